"""Answers with what looks like a message and is none."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class UnparsableAnswer(Server):
    def act(self, message: Message, wire: Wire) -> None:
        good = encoded(result(message, said("done")))
        wire.frame(
            {
                "no_jsonrpc": good.replace(b'"jsonrpc": "2.0", ', b""),
                "old_jsonrpc": good.replace(b"2.0", b"1.0"),
                "number_jsonrpc": good.replace(b'"2.0"', b"2.0"),
                "truncated": good[:-5],
                "trailing_comma": good[:-1] + b",}",
                "single_quotes": good.replace(b'"', b"'"),
                "comment": b"{// the answer\r" + good[1:],
                "braces_only": b"{}",
                "brackets_only": b"[]",
                "trailing_garbage": good + b"garbage",
                "control_character": good.replace(b"done", b"do\x01ne"),
                "raw_tab": good.replace(b"done", b"do\tne"),
                "bad_escape": good.replace(b"done", b"do\\xne"),
                "utf16": good.decode().encode("utf-16"),
                "capitals": good.replace(b'"result"', b'"Result"'),
                "method_too": good[:-1] + b', "method": "tools/call"}',
            }[self.argument]
        )


if __name__ == "__main__":
    serve(UnparsableAnswer)
