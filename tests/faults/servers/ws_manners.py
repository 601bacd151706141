"""Keeps to the letter of WebSocket, and to nothing else."""

import struct
import time
import zlib

from tests.faults.harness import Message, Server, Wire, encoded, notification, result, said, serve, wait_for_ever
from tests.faults.network import CLOSE, PING, TEXT, Exchange, WebSocketWire, accept_key, converse, upgrade

_NEGOTIATED = {
    "no_takeover": "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    "small_window": "permessage-deflate; server_max_window_bits=9",
    "packed_fragments": "permessage-deflate",
    "bad_deflate": "permessage-deflate",
    "packed_empty": "permessage-deflate",
    "odd_window": "permessage-deflate; server_max_window_bits=99",
    "twice": "permessage-deflate, permessage-deflate",
}


class WsManners(Server):
    def http(self, exchange: Exchange) -> bool:
        if self.argument == "slow_handshake":
            head = f"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept_key(exchange)}\r\n\r\n"
            for byte in head.encode():
                exchange.send(bytes([byte]))
                time.sleep(0.1)
        if (offered := _NEGOTIATED.get(self.argument)) is None:
            return False
        upgrade(exchange, Sec_WebSocket_Extensions=offered)
        converse(self, WebSocketWire(exchange, inflate=True))
        return True

    def act(self, message: Message, wire: Wire) -> None:
        assert isinstance(wire, WebSocketWire)
        good = encoded(result(message, said("done \u20ac")))
        good = good.replace(b"\\u20ac", "\u20ac".encode())
        match self.argument:
            case "torn_character":
                cut = good.index(b"\xe2") + 1
                wire.send(TEXT, good[:cut], flags=0)
                wire.send(0, good[cut:])
            case "tiny_fragments":
                wire.send(TEXT, good[:1], flags=0)
                for byte in good[1:]:
                    wire.send(PING, b"x")
                    wire.send(0, bytes([byte]), flags=0)
                wire.send(0, b"")
            case "long_lengths":
                wire.raw(b"\x81\x7f" + struct.pack("!Q", len(good)) + good)
            case "slow_frame":
                for byte in b"\x81\x7e" + struct.pack("!H", len(good)) + good:
                    wire.raw(bytes([byte]))
                    time.sleep(0.001)
            case "after_close":
                wire.send(CLOSE, struct.pack("!H", 1000))
                wire.frame(good)
            case "lingers":
                wire.send(CLOSE, struct.pack("!H", 1000))
                wait_for_ever()
            case "lingers_talking":
                wire.send(CLOSE, struct.pack("!H", 1001))
                while True:
                    wire.frame(encoded(notification("message", level="info", data="goodbye")))
                    time.sleep(0.01)
            case "other_between":
                wire.send(TEXT, good[:9], flags=0)
                wire.frame(good)
            case "no_takeover" | "small_window" | "packed_fragments":
                packer = zlib.compressobj(9, zlib.DEFLATED, -9 if self.argument == "small_window" else -15)
                packed = (packer.compress(good) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
                if self.argument == "packed_fragments":
                    wire.send(TEXT, packed[:9], flags=0x40)
                    wire.send(0, packed[9:])
                else:
                    wire.send(TEXT, packed, flags=0xC0)
            case "bad_deflate":
                wire.send(TEXT, b"\xff" * 100, flags=0xC0)
            case "packed_empty":
                wire.send(TEXT, b"", flags=0xC0)
                wire.frame(good)


if __name__ == "__main__":
    serve(WsManners)
