"""Serves a faulty server over SSE, WebSocket and streamable HTTP: a thread a connection, every byte its own."""

import base64
import hashlib
import json
import os
import socket
import struct
import threading
import zlib
from dataclasses import dataclass, field

from tests.faults.harness import Message, Server

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class HungUp(Exception):
    """The client is gone."""


@dataclass
class Exchange:
    """One HTTP request as it came, and the socket to answer it on."""

    socket: socket.socket
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    transport: str
    kept: bool = field(default=True)
    """Whether the connection takes another request afterwards."""

    @property
    def message(self) -> Message:
        """The JSON-RPC message in the body; none is empty."""
        found = json.loads(self.body) if self.body else {}
        assert isinstance(found, dict)
        return found

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            raise HungUp from None

    def head(self, status: int = 200, /, **headers: object) -> None:
        lines = [f"HTTP/1.1 {status} Whatever"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def answer(self, status: int = 200, body: bytes = b"", /, **headers: object) -> None:
        self.head(status, Content_Length=len(body), **headers)
        self.send(body)

    def wait(self) -> None:
        """Until the client hangs up."""
        try:
            while self.socket.recv(65_536):
                pass
        except OSError:
            pass
        raise HungUp

    def reset(self) -> None:
        """End the connection as a crash does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        raise HungUp


class EventsWire:
    """Events on a response that stays open: the stream of an SSE session, or one answer over streamable HTTP."""

    def __init__(self, exchange: Exchange, **headers: object) -> None:
        self.transport = exchange.transport
        self.exchange = exchange
        self.headers = headers
        self.begun = False
        self._one_at_a_time = threading.Lock()

    def begin(self) -> None:
        if not self.begun:
            self.begun = True
            self.exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked", **self.headers)

    def frame(self, data: bytes) -> None:
        lines = data.replace(b"\r\n", b"\n").split(b"\n")
        self.event(b"message", b"\n".join(b"data: " + line for line in lines))

    def event(self, name: bytes, fields: bytes) -> None:
        self.raw(b"event: " + name + b"\n" + fields + b"\n\n")

    def raw(self, data: bytes) -> None:
        with self._one_at_a_time:
            self.begin()
            self.exchange.send(b"%x\r\n" % len(data) + data + b"\r\n")

    def hold(self) -> None:
        if self.transport != "sse":
            self.begin()
            self.exchange.wait()

    def close(self) -> None:
        self.begin()
        self.exchange.send(b"0\r\n\r\n")
        if self.transport == "sse":
            self.exchange.socket.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        if self.transport == "sse":
            # Another thread reads this socket: closing would not be enough to wake it.
            self.exchange.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.exchange.socket.shutdown(socket.SHUT_RDWR)
            raise HungUp
        self.exchange.reset()


class BodyWire:
    """One JSON body."""

    transport = "json"

    def __init__(self, exchange: Exchange, **headers: object) -> None:
        self.exchange = exchange
        self.headers = {"Content_Type": "application/json", **headers}
        self.begun = False

    def frame(self, data: bytes) -> None:
        if not self.begun:
            self.begun = True
            self.exchange.answer(200, data, **self.headers)

    def raw(self, data: bytes) -> None:
        if not self.begun:
            self.begun = True
            self.exchange.kept = False
            self.exchange.head(Connection="close", **self.headers)
        self.exchange.send(data)

    def hold(self) -> None:
        if not self.begun:
            self.exchange.wait()

    def close(self) -> None:
        self.exchange.kept = False

    def drop(self) -> None:
        self.exchange.reset()


class WebSocketWire:
    """Frames on one connection."""

    transport = "websocket"

    def __init__(self, exchange: Exchange, *, inflate: bool = False) -> None:
        self.exchange = exchange
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS) if inflate else None
        self._one_at_a_time = threading.Lock()

    def frame(self, data: bytes) -> None:
        self.send(TEXT, data)

    def send(self, opcode: int, data: bytes, *, flags: int = 0x80) -> None:
        size = len(data)
        if size < 126:
            length = bytes([size])
        else:
            length = struct.pack("!BH", 126, size) if size < 65_536 else struct.pack("!BQ", 127, size)
        self.raw(bytes([flags | opcode]) + length + data)

    def raw(self, data: bytes) -> None:
        with self._one_at_a_time:
            self.exchange.send(data)

    def hold(self) -> None:
        return

    def close(self, code: int = 1000, reason: bytes = b"") -> None:
        self.send(CLOSE, struct.pack("!H", code) + reason)

    def drop(self) -> None:
        self.exchange.reset()

    def receive(self) -> bytes:
        """The next message of the client's."""
        while True:
            first, second = _exactly(self.exchange.socket, 2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", _exactly(self.exchange.socket, 2))
            elif size == 127:
                (size,) = struct.unpack("!Q", _exactly(self.exchange.socket, 8))
            mask = _exactly(self.exchange.socket, 4)
            masked = _exactly(self.exchange.socket, size)
            repeated = (mask * (size // 4 + 1))[:size]
            data = (int.from_bytes(masked, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
            match first & 0x0F:
                case 8:
                    self.send(CLOSE, data)
                    raise HungUp
                case 9:
                    self.send(PONG, data)
                case 1 | 2:
                    if self._inflate is not None and first & 0x40:
                        return self._inflate.decompress(data + b"\0\0\xff\xff")
                    return data


def accept_key(exchange: Exchange) -> str:
    """What proves to a client that this is a WebSocket server."""
    key = exchange.headers["sec-websocket-key"].encode()
    return base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()


def upgrade(exchange: Exchange, **headers: object) -> None:
    """Answer the request for a WebSocket with yes."""
    accepted = {"Sec_WebSocket_Protocol": "mcp", "Sec_WebSocket_Accept": accept_key(exchange), **headers}
    exchange.head(101, Upgrade="websocket", Connection="Upgrade", **accepted)


def converse(server: Server, wire: WebSocketWire) -> None:
    """Take messages until the client goes."""
    while True:
        server.take(json.loads(wire.receive()), wire)


class Listener:
    """Accepts connections for one server."""

    def __init__(self, server: Server, transport: str) -> None:
        self._server = server
        self._transport = transport
        self._sessions: dict[str, EventsWire] = {}

    def talk(self, connection: socket.socket) -> None:
        """Everything on one connection."""
        try:
            dressed = self._server.dress(connection)
        except OSError:
            connection.close()
            return
        with dressed:
            try:
                while True:
                    exchange = _read(dressed, self._transport, self._server)
                    if not self._server.http(exchange):
                        self._serve(exchange)
                    if not exchange.kept:
                        return
            except (HungUp, OSError):
                return

    def _serve(self, exchange: Exchange) -> None:
        match self._transport, exchange.method:
            case "websocket", _:
                upgrade(exchange)
                converse(self._server, WebSocketWire(exchange))
            case "sse", "GET":
                self.open_session(exchange)
            case "sse", "POST":
                exchange.answer(202)
                self._server.take(exchange.message, self._sessions[exchange.path.rpartition("=")[2]])
            case _, "POST":
                self._answer(exchange)
            case _:
                exchange.answer(405 if exchange.method == "GET" else 200)

    def open_session(self, exchange: Exchange) -> None:
        """The stream of an SSE session."""
        wire = EventsWire(exchange)
        number = str(len(self._sessions))
        self._sessions[number] = wire
        wire.event(b"endpoint", b"data: /messages?session=" + number.encode())
        exchange.wait()

    def _answer(self, exchange: Exchange) -> None:
        if "id" not in exchange.message or "method" not in exchange.message:
            exchange.answer(202)
            self._server.told(exchange.message, BodyWire(exchange))
            return
        if self._transport == "json":
            body = BodyWire(exchange)
            self._server.take(exchange.message, body)
            return
        events = EventsWire(exchange)
        self._server.take(exchange.message, events)
        events.close()


def serve_network(server: Server, transport: str) -> None:
    """Listen on a free port of loopback, say which, and serve for ever."""
    listener = Listener(server, transport)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with socket.create_server(("127.0.0.1", int(os.environ.get("FAULT_LISTEN", "0"))), backlog=128) as door:
        said = os.environ["FAULT_PORT"]
        with open(said + ".new", "w", encoding="ascii") as file:  # noqa: PTH123 - pathlib is half of the start time
            file.write(str(door.getsockname()[1]))
        os.replace(said + ".new", said)  # noqa: PTH105
        while True:
            connection, _ = door.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=listener.talk, args=(connection,), daemon=True).start()


def _end_with_parent() -> None:
    """Whoever started us holds our input open; however it ends, so do we."""
    while os.read(0, 1):
        pass
    os._exit(0)


def _read(connection: socket.socket, transport: str, server: Server) -> Exchange:
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        head += _exactly(connection, 1)
        if not head[:1].isalpha():
            # TLS, say: a web server answers that in plain text and hangs up.
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            raise HungUp
    first, *rest = head.decode("latin-1").strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    exchange = Exchange(connection, method, path, headers, b"", transport)
    if server.head(exchange):
        raise HungUp
    exchange.body = _exactly(connection, int(headers.get("content-length", 0)))
    return exchange


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            part = connection.recv(min(size - len(data), 1 << 20))
        except OSError:
            raise HungUp from None
        if not part:
            raise HungUp
        data += part
    return bytes(data)
