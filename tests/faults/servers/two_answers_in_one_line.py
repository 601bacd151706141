"""Writes a notification and its answer without a line between."""

from tests.faults.harness import Message, Server, Wire, encoded, notification, result, said, serve


class TwoAnswersInOneLine(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(encoded(notification("message", level="info", data="x")) + encoded(result(message, said("done"))))


if __name__ == "__main__":
    serve(TwoAnswersInOneLine)
