"""Answers nothing until its own question has been answered."""

from tests.faults.harness import Message, Server, Wire, encoded, serve


class AsksBeforeAnswering(Server):
    waiting: tuple[Message, Wire] | None = None

    def ask(self, message: Message, wire: Wire) -> None:
        self.waiting = message, wire
        params = {"messages": [], "maxTokens": 5} if self.argument.startswith("sampling") else {}
        question = {"jsonrpc": "2.0", "id": message["id"], "method": self.argument, "params": params}
        wire.frame(encoded(question))

    def initialize(self, message: Message, wire: Wire) -> None:
        self.ask(message, wire)

    def told(self, message: Message, wire: Wire) -> None:
        if "method" not in message and self.waiting is not None:
            (first, its_wire), self.waiting = self.waiting, None
            super().initialize(first, its_wire)


if __name__ == "__main__":
    serve(AsksBeforeAnswering)
