"""Answers with an object of half a million keys."""

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class ManyKeys(Server):
    def act(self, message: Message, wire: Wire) -> None:
        reply(wire, message, {**said("done"), "structuredContent": {str(n): 0 for n in range(500_000)}})


if __name__ == "__main__":
    serve(ManyKeys)
