"""Answers with nine megabytes, within every bound, of what takes longest to read."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve

_SIZE = 9_000_000


class HeavyAnswer(Server):
    def act(self, message: Message, wire: Wire) -> None:
        text = {
            "surrogates": b"\\ud800",
            "escapes": b"\\u0041",
            "quotes": b'\\"',
            "backslashes": b"\\\\",
            "brackets": b"[{",
            "newlines": b"\\n",
            "control": b"\\u001b[31m",
            "bidi": "\u202e\u200b".encode(),
            "tags": "\U000e0041".encode(),
            "emoji": "\U0001f600".encode(),
            "invalid": b"\xff",
            "commas": b",",
        }.get(self.argument)
        good = encoded(result(message, said("@")))
        if text is not None:
            wire.frame(good.replace(b"@", text * (_SIZE // len(text))))
            return
        structured = {
            "integers": b"[" + b",".join([b"9" * 4_000] * 2_000) + b"]",
            "floats": b"[" + b",".join([b"0." + b"1" * 80] * 25_000) + b"]",
            "long_float": b"[1." + b"3" * 8_000_000 + b"]",
            "blanks": b"[" + b" " * _SIZE + b"]",
            "keys": b"{" + b",".join(b'"%07d":0' % n for n in range(29_000)) + b"}",
            "long_keys": b"{" + b",".join(b'"%0900d":0' % n for n in range(9_000)) + b"}",
        }[self.argument]
        wire.frame(good.replace(b'"@"', b'"done"')[:-2] + b', "structuredContent": {"x": ' + structured + b"}}}")


if __name__ == "__main__":
    serve(HeavyAnswer)
