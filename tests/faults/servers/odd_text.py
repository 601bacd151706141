"""Answers with text that is hard to keep."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class OddText(Server):
    def act(self, message: Message, wire: Wire) -> None:
        good = encoded(result(message, said("done TEXT")))
        wire.frame(
            good.replace(
                b"TEXT",
                {
                    "invalid_utf8": b"\xff\xfe\xc3(",
                    "lone_surrogate": b"\\ud800",
                    "reversed_surrogates": b"\\udc00\\ud800",
                    "nul": b"\\u0000",
                    "encoded_surrogate": b"\xed\xa0\x80",
                    "overlong": b"\xc0\xaf",
                    "line_separator": "\u2028\u2029\u0085".encode(),
                    "ansi": b"\\u001b[2J\\u001b]0;owned\\u0007",
                }[self.argument],
            )
        )


if __name__ == "__main__":
    serve(OddText)
