"""Closes its output in the middle of a call and lives on."""

from tests.faults.harness import Message, Server, Wire, serve, wait_for_ever


class ClosesOutput(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.close()
        if wire.transport == "stdio":
            wait_for_ever()


if __name__ == "__main__":
    serve(ClosesOutput)
