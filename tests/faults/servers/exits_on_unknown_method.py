"""Ends at a method that it does not know."""

from tests.faults.harness import Message, Server, Wire, serve


class ExitsOnUnknownMethod(Server):
    def discover(self, message: Message, wire: Wire) -> None:
        wire.drop()


if __name__ == "__main__":
    serve(ExitsOnUnknownMethod)
