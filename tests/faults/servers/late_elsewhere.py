"""Gives the answer to one call in the stream of the next."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class LateElsewhere(Server):
    owed: Message | None = None

    def act(self, message: Message, wire: Wire) -> None:
        self.owed = message
        wire.hold()

    def take(self, message: Message, wire: Wire) -> None:
        if message.get("method") == "tools/call" and self.owed is not None:
            wire.frame(encoded(result(self.owed, said("late"))))
            if self.argument == "only":
                return
        super().take(message, wire)


if __name__ == "__main__":
    serve(LateElsewhere)
