"""Answers with three million numbers in structured content."""

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class ManyNumbers(Server):
    def act(self, message: Message, wire: Wire) -> None:
        reply(wire, message, {**said("done"), "structuredContent": {"numbers": [1] * 3_000_000}})


if __name__ == "__main__":
    serve(ManyNumbers)
