"""Asks the client in ways that are none, before it answers."""

from typing import Any

from tests.faults.harness import Message, Server, Wire, encoded, reply, said, serve


class BadRequest(Server):
    def act(self, message: Message, wire: Wire) -> None:
        numbers: list[Any] = [None, True, 1.5, {}, [], "", "x" * 100_000, -1, 0, 0]
        for number in numbers:
            wire.frame(encoded({"jsonrpc": "2.0", "id": number, "method": "ping"}))
            wire.frame(encoded({"jsonrpc": "2.0", "id": number, "method": "sampling/createMessage", "params": 7}))
        reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(BadRequest)
