"""Nests lists a hundred thousand deep, and never closes them."""

from tests.faults.harness import Message, Server, Wire, serve


class DeepArrays(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(b'{"jsonrpc":"2.0","id":%d,"result":{"content":%s' % (message["id"], b"[" * 100_000))


if __name__ == "__main__":
    serve(DeepArrays)
