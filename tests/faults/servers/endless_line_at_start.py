"""Sends bytes without end instead of an opening."""

from tests.faults.harness import Message, Server, Wire, serve


class EndlessLineAtStart(Server):
    def initialize(self, message: Message, wire: Wire) -> None:
        self.discover(message, wire)

    def discover(self, message: Message, wire: Wire) -> None:
        while True:
            wire.raw(b"{" * 1_000_000)


if __name__ == "__main__":
    serve(EndlessLineAtStart)
