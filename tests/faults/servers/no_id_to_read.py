"""Answers with a broken message in which no id can be found."""

from tests.faults.harness import Message, Server, Wire, serve


class NoIdToRead(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(b'{"jsonrpc": "2.0", "result": {"content": [], ')


if __name__ == "__main__":
    serve(NoIdToRead)
