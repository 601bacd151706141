"""Nests its answer as deep as it is told."""

from tests.faults.harness import Message, Server, Wire, serve


class DeepJson(Server):
    def act(self, message: Message, wire: Wire) -> None:
        depth = int(self.argument)
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        wire.frame(
            b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"done"}],"structuredContent":%s}}'
            % (message["id"], nested)
        )


if __name__ == "__main__":
    serve(DeepJson)
