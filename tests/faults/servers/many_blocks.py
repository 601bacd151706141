"""Answers with as many blocks as it is told."""

from tests.faults.harness import Message, Server, Wire, reply, serve


class ManyBlocks(Server):
    def act(self, message: Message, wire: Wire) -> None:
        block = {"type": "text", "text": "x"}
        reply(wire, message, {"content": [block] * int(self.argument)})


if __name__ == "__main__":
    serve(ManyBlocks)
