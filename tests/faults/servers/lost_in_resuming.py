"""Gives its stream an id that no header can carry, and ends it before the answer."""

from tests.faults.harness import Message, Server, Wire, serve
from tests.faults.network import EventsWire


class LostInResuming(Server):
    def act(self, message: Message, wire: Wire) -> None:
        assert isinstance(wire, EventsWire)
        named = {"unicode": "\u20ac\u202e".encode(), "huge": b"i" * 500_000, "control": b"a\x01\x7fb"}[self.argument]
        wire.raw(b"id: " + named + b"\nretry: 1\ndata:\n\n")


if __name__ == "__main__":
    serve(LostInResuming)
