"""Sends frames that WebSocket does not have, or ends in a way of its own."""

import socket
import struct

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve
from tests.faults.network import BINARY, CLOSE, PING, TEXT, WebSocketWire


class WsFrames(Server):
    def act(self, message: Message, wire: Wire) -> None:
        assert isinstance(wire, WebSocketWire)
        good = encoded(result(message, said("done")))
        match self.argument:
            case "close_1011" | "close_1000" | "close_4000" | "close_1012" | "close_999":
                wire.close(int(self.argument.removeprefix("close_")), b"the disk is full")
            case "close_without_code":
                wire.send(CLOSE, b"")
            case "close_half_code":
                wire.send(CLOSE, b"\x03")
            case "close_bad_reason":
                wire.send(CLOSE, b"\x03\xe8\xff\xfe")
            case "end_without_close":
                wire.exchange.socket.shutdown(socket.SHUT_RDWR)
            case "binary":
                wire.send(BINARY, good)
            case "fragments":
                wire.send(TEXT, good[:5], flags=0)
                wire.send(PING, b"between")
                wire.send(0, good[5:])
            case "many_fragments":
                wire.send(TEXT, good[:1], flags=0)
                for _ in range(50_000):
                    wire.send(0, b"", flags=0)
                wire.send(0, good[1:])
            case "endless_fragments":
                wire.send(TEXT, good[:1], flags=0)
                while True:
                    wire.send(0, b"x" * 1_000_000, flags=0)
            case "continuation_first":
                wire.send(0, good)
            case "masked":
                wire.raw(b"\x81" + bytes([0x80 | 4]) + b"\0\0\0\0" + b"{}{}")
            case "reserved_bits":
                wire.send(TEXT, good, flags=0xF0)
            case "unknown_opcode":
                wire.send(3, good)
            case "long_ping":
                wire.send(PING, b"p" * 200)
            case "ping_flood":
                for _ in range(50_000):
                    wire.send(PING, b"p")
                wire.frame(good)
            case "pong_flood":
                for _ in range(50_000):
                    wire.send(10, b"p")
                wire.frame(good)
            case "empty_frames":
                for _ in range(10_000):
                    wire.frame(b"")
                wire.frame(good)
            case "invalid_utf8":
                wire.frame(good.replace(b"done", b"done \xff\xfe"))
            case "huge_length":
                wire.raw(b"\x81\x7f" + struct.pack("!Q", 1 << 62))
            case "half_frame":
                wire.raw(b"\x81\x7f" + struct.pack("!Q", 5_000_000) + b"{")
            case "garbage":
                wire.raw(bytes(range(256)) * 16)


if __name__ == "__main__":
    serve(WsFrames)
