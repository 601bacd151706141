"""Answers with a result of a kind that does not exist."""

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class UnknownResultType(Server):
    def act(self, message: Message, wire: Wire) -> None:
        reply(wire, message, {**said("done"), "resultType": "telepathy"})


if __name__ == "__main__":
    serve(UnknownResultType)
