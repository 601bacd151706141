"""Writes a word before its answer, on the same line."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class PrefixedAnswer(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(b"DEBUG answer: " + encoded(result(message, said("done"))))


if __name__ == "__main__":
    serve(PrefixedAnswer)
