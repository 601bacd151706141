"""Is gone in the middle of writing its answer."""

from tests.faults.harness import Message, Server, Wire, serve


class ExitsWithHalfALine(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.raw(b'{"jsonrpc": "2.0", "id": %d, "result": {"content"' % message["id"])
        wire.drop()


if __name__ == "__main__":
    serve(ExitsWithHalfALine)
