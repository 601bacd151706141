"""Writes its events in ways that few parsers have seen."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve
from tests.faults.network import EventsWire


class OddEvents(Server):
    def act(self, message: Message, wire: Wire) -> None:
        assert isinstance(wire, EventsWire)
        good = encoded(result(message, said("done")))
        match self.argument:
            case "cr_only":
                wire.raw(b"event: message\rdata: " + good + b"\r\r")
            case "split_crlf":
                for part in (b"event: message\r", b"\ndata: " + good + b"\r", b"\n\r", b"\n"):
                    wire.raw(part)
            case "no_blanks":
                wire.raw(b"event:message\ndata:" + good + b"\n\n")
            case "no_name":
                wire.raw(b"data: " + good + b"\n\n")
            case "over_lines":
                wire.raw(b"data: " + good.replace(b", ", b",\ndata: ") + b"\n\n")
            case "byte_by_byte":
                for byte in b"event: message\ndata: " + good + b"\n\n":
                    wire.raw(bytes([byte]))
            case "comments":
                for _ in range(200):
                    wire.raw(b":" + b"c" * 100_000 + b"\n")
                wire.frame(good)
            case "endless_comment":
                wire.raw(b":")
                while True:
                    wire.raw(b"c" * 1_000_000)
            case "empty_lines":
                wire.raw(b"data:\n" * 500_000)
                wire.raw(b"\n")
                wire.frame(good)
            case "long_name":
                wire.raw(b"event: " + b"n" * 2_000_000 + b"\ndata: x\n\n")
                wire.frame(good)
            case "odd_ids":
                for value in (b"a\0b", "\u20ac".encode(), b"\xff\xfe", b"i" * 100_000, b""):
                    wire.raw(b"id: " + value + b"\ndata:\n\n")
                wire.frame(good)
            case "odd_retry":
                for value in (b"-1", b"1e9", b"999999999", b"9" * 5_000, b"\xd9\xa3"):
                    wire.raw(b"retry: " + value + b"\n\n")
                wire.frame(good)
            case "merged":
                wire.raw(b"data: " + good + b"\ndata: " + good + b"\n\n")


if __name__ == "__main__":
    serve(OddEvents)
