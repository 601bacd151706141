"""Ends its lines, or fills them, as nobody else does."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class OddLines(Server):
    def act(self, message: Message, wire: Wire) -> None:
        good = encoded(result(message, said("done")))
        match self.argument:
            case "cr_only":
                wire.raw(good + b"\r")
            case "nul":
                wire.raw(good + b"\0\n")
            case "record_separator":
                wire.raw(b"\x1e" + good + b"\n")
            case "length_prefix":
                wire.raw(b"Content-Length: %d\r\n\r\n" % len(good) + good)
            case "form_feed":
                wire.raw(b"\f" + good + b"\v\n")
            case "never_ended":
                wire.raw(good)
            case "blanks":
                wire.raw(b" " * 2_000_000 + good + b"\t" * 2_000_000 + b"\n")
            case "empty_lines":
                wire.raw(b"\n" * 2_000_000 + good + b"\n")
            case "byte_by_byte":
                for byte in good + b"\n":
                    wire.raw(bytes([byte]))
            case "utf16":
                wire.raw((good + b"\n").decode().encode("utf-16"))
            case "utf7":
                wire.raw(good.replace(b"done", b"+AGQ-one") + b"\n")


if __name__ == "__main__":
    serve(OddLines)
