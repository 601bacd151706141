"""Answers one call twice, differently."""

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class DuplicateAnswer(Server):
    def act(self, message: Message, wire: Wire) -> None:
        reply(wire, message, said("first"))
        reply(wire, message, said("second"))


if __name__ == "__main__":
    serve(DuplicateAnswer)
