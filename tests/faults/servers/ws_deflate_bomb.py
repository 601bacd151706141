"""Agrees on compression and sends a message that unpacks to as many megabytes as it is told."""

import zlib

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve
from tests.faults.network import TEXT, Exchange, WebSocketWire, converse, upgrade


class WsDeflateBomb(Server):
    def http(self, exchange: Exchange) -> bool:
        upgrade(exchange, Sec_WebSocket_Extensions="permessage-deflate")
        converse(self, WebSocketWire(exchange, inflate=True))
        return True

    def act(self, message: Message, wire: Wire) -> None:
        assert isinstance(wire, WebSocketWire)
        size = int(float(self.argument) * 1_000_000)
        packer = zlib.compressobj(1, wbits=-zlib.MAX_WBITS)
        packed = packer.compress(encoded(result(message, said("done" + "x" * size)))) + packer.flush(zlib.Z_SYNC_FLUSH)
        wire.send(TEXT, packed.removesuffix(b"\0\0\xff\xff"), flags=0xC0)


if __name__ == "__main__":
    serve(WsDeflateBomb)
