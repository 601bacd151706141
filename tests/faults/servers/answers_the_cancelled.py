"""Says nothing until it is told that nobody waits, and then says too much."""

from tests.faults.harness import Message, Server, Wire, encoded, note, refusal, result, said, serve


class AnswersTheCancelled(Server):
    waiting: tuple[Message, Wire] | None = None

    def act(self, message: Message, wire: Wire) -> None:
        self.waiting = message, wire
        wire.hold()

    def told(self, message: Message, wire: Wire) -> None:
        super().told(message, wire)
        if self.waiting is None or message.get("method") != "notifications/cancelled":
            return
        (call, its_wire), self.waiting = self.waiting, None
        note("late")
        match self.argument:
            case "twice":
                its_wire.frame(encoded(result(call, said("late"))))
                its_wire.frame(encoded(refusal(call, "cancelled")))
            case "null":
                its_wire.frame(encoded({"jsonrpc": "2.0", "id": None, "error": {"code": -32800, "message": "off"}}))
            case "many":
                for _ in range(2_000):
                    its_wire.frame(encoded(result(call, said("late"))))


if __name__ == "__main__":
    serve(AnswersTheCancelled)
