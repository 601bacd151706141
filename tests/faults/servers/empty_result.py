"""Answers a call with an empty object."""

from tests.faults.harness import Message, Server, Wire, reply, serve


class EmptyResult(Server):
    def act(self, message: Message, wire: Wire) -> None:
        reply(wire, message, {})


if __name__ == "__main__":
    serve(EmptyResult)
