"""Claims the stateless revision and then refuses everything in it."""

from tests.faults.harness import Message, Server, Wire, encoded, refusal, serve


class DiscoverLies(Server):
    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        self.opened = False
        self.modern = True

    def initialize(self, message: Message, wire: Wire) -> None:
        self.opened = True
        super().initialize(message, wire)

    def list_tools(self, message: Message, wire: Wire) -> None:
        if self.opened:
            super().list_tools(message, wire)
        else:
            wire.frame(encoded(refusal(message, "Server not initialized", code=-32600)))


if __name__ == "__main__":
    serve(DiscoverLies)
