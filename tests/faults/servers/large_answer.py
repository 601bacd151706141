"""Answers with as many million characters as it is told."""

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class LargeAnswer(Server):
    def act(self, message: Message, wire: Wire) -> None:
        reply(wire, message, said("x" * int(float(self.argument) * 1_000_000)))


if __name__ == "__main__":
    serve(LargeAnswer)
