"""Answers the opening blindly and reads nothing more."""

from tests.faults.harness import Message, Server, Wire, serve, wait_for_ever


class NeverReads(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        super().list_tools(message, wire)
        wait_for_ever()


if __name__ == "__main__":
    serve(NeverReads)
