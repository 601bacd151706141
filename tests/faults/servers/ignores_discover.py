"""Says nothing to a method that it does not know."""

from tests.faults.harness import Message, Server, Wire, note, serve


class IgnoresDiscover(Server):
    def discover(self, message: Message, wire: Wire) -> None:
        note("discover")
        wire.hold()


if __name__ == "__main__":
    serve(IgnoresDiscover)
