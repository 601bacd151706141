"""Answers the first call only when nobody waits for it any more."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class LateAnswer(Server):
    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        self.late: list[bytes] = []

    def act(self, message: Message, wire: Wire) -> None:
        self.late.append(encoded(result(message, said("LATE"))))
        wire.hold()

    def take(self, message: Message, wire: Wire) -> None:
        if message.get("params", {}).get("name") == "echo":
            for answer in self.late:
                wire.frame(answer)
        super().take(message, wire)


if __name__ == "__main__":
    serve(LateAnswer)
