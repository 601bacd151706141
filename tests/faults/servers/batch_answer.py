"""Puts its answer into a batch."""

from tests.faults.harness import Message, Server, Wire, encoded, notification, result, said, serve


class BatchAnswer(Server):
    def act(self, message: Message, wire: Wire) -> None:
        answers = [result(message, said("done"))]
        if self.argument == "notified":
            answers.insert(0, notification("message", level="info", data="x"))
        wire.frame(encoded(answers))


if __name__ == "__main__":
    serve(BatchAnswer)
