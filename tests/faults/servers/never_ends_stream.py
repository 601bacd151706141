"""Answers in a stream that it never ends, and goes on talking in it."""

from tests.faults.harness import Message, Server, Wire, encoded, notification, reply, said, serve
from tests.faults.network import EventsWire


class NeverEndsStream(Server):
    def act(self, message: Message, wire: Wire) -> None:
        assert isinstance(wire, EventsWire)
        reply(wire, message, said("done"))
        while self.argument == "talks":
            wire.frame(encoded(notification("message", level="info", data="and another thing")))
        while self.argument == "repeats":
            reply(wire, message, said("done again"))
        wire.hold()


if __name__ == "__main__":
    serve(NeverEndsStream)
