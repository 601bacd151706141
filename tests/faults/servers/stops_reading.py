"""Reads nothing any more once it was called."""

from tests.faults.harness import Message, Server, Wire, serve, wait_for_ever


class StopsReading(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wait_for_ever()


if __name__ == "__main__":
    serve(StopsReading)
