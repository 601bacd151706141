"""Begins an answer and never comes to its end."""

from tests.faults.harness import Message, Server, Wire, serve


class EndlessLine(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.raw(b'{"jsonrpc": "2.0", "id": %d, "result": "' % message["id"])
        while True:
            wire.raw(b"x" * 1_000_000)


if __name__ == "__main__":
    serve(EndlessLine)
