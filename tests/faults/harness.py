"""A small MCP server that behaves; each fault departs from it in one place, and is served over every transport.

python -S -m tests.faults.servers.FAULT stdio|sse|websocket|http|json [ARGUMENT]

`http` answers with a stream of events and `json` with a body. What a server wants to be known of it afterwards it
writes to the file FAULT_NOTES, a line each. Over the network it writes its port to the file FAULT_PORT. With
FAULT_ERA=modern it speaks the stateless revision. Standard library only, so that a server starts in a blink.
"""

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import socket

    from tests.faults.network import Exchange

Message = dict[str, Any]

MODERN = "2026-07-28"
OBJECT: Message = {"type": "object"}
ECHO: Message = {
    "name": "echo",
    "description": "Says the text again, and always behaves",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}
ACT: Message = {"name": "act", "description": "Misbehaves", "inputSchema": OBJECT}
LONG = 3600.0


class Wire(Protocol):
    """The way back to the client, in the state in which one message of its was received."""

    transport: str

    def frame(self, data: bytes) -> None:
        """Send `data` as one message of the transport."""

    def raw(self, data: bytes) -> None:
        """Send `data` past the transport's own framing, as far as it has one."""

    def hold(self) -> None:
        """Do not answer, and do not let the client know: only over HTTP is returning an answer of its own."""

    def close(self) -> None:
        """End the connection in good order."""

    def drop(self) -> None:
        """End it as a crash does: the process is gone, the connection reset."""


class Server:
    """Behaves. A fault overrides `act`, or whatever else it does badly."""

    version = "2025-06-18"

    def __init__(self, argument: str = "") -> None:
        self.capabilities: Message = {"tools": {"listChanged": True}, "logging": {}}
        self.argument = argument
        self.modern = os.environ.get("FAULT_ERA") == "modern"
        self.tools: list[Any] = [ACT, ECHO]

    def started(self) -> None:
        """The process runs, nothing was read yet."""

    def ended(self) -> None:
        """The input has ended, and with it our work."""

    def dress(self, connection: "socket.socket") -> "socket.socket":
        """What a new connection is spoken over."""
        return connection

    def head(self, exchange: "Exchange") -> bool:
        """A chance to treat an HTTP request of which only the head was read; True if that was the end of it."""
        return False

    def http(self, exchange: "Exchange") -> bool:
        """A chance to treat one HTTP request in a way of its own; True if that was done."""
        return False

    def take(self, message: Message, wire: Wire) -> None:
        """Treat one message of the client's."""
        match message.get("method"):
            case "initialize":
                self.initialize(message, wire)
            case "server/discover":
                self.discover(message, wire)
            case "ping":
                self.ping(message, wire)
            case "tools/list":
                self.list_tools(message, wire)
            case "tools/call" if message["params"]["name"] == "echo":
                reply(wire, message, said(str(message["params"].get("arguments", {}).get("text", ""))))
            case "tools/call":
                self.act(message, wire)
            case _ if "id" in message and "method" in message:
                wire.frame(encoded(refusal(message, "Method not found", code=-32601)))
            case _:
                self.told(message, wire)

    def initialize(self, message: Message, wire: Wire) -> None:
        reply(wire, message, self.introduction())

    def introduction(self) -> Message:
        return {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "serverInfo": {"name": "faulty", "version": "1.0"},
        }

    def discover(self, message: Message, wire: Wire) -> None:
        if self.modern:
            reply(wire, message, {"supportedVersions": [MODERN], "capabilities": self.capabilities})
        else:
            wire.frame(encoded(refusal(message, "Method not found", code=-32601)))

    def ping(self, message: Message, wire: Wire) -> None:
        reply(wire, message, {})

    def list_tools(self, message: Message, wire: Wire) -> None:
        reply(wire, message, {"tools": self.tools})

    def act(self, message: Message, wire: Wire) -> None:
        reply(wire, message, said("done"))

    def told(self, message: Message, wire: Wire) -> None:
        """A notification, or an answer to a request of ours."""
        if message.get("method") == "notifications/cancelled":
            note("cancelled")


def said(text: str) -> Message:
    return {"content": [{"type": "text", "text": text}]}


def result(request: Message, value: Any) -> Message:
    return {"jsonrpc": "2.0", "id": request["id"], "result": value}


def refusal(request: Message, words: str, *, code: int = -32000) -> Message:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": words}}


def notification(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


def reply(wire: Wire, request: Message, value: Any) -> None:
    wire.frame(encoded(result(request, value)))


def note(line: object) -> None:
    """Write down what happened, for whoever judges this server."""
    path = os.environ.get("FAULT_NOTES")
    if path:
        with open(path, "a", encoding="utf-8") as notes:  # noqa: PTH123 - pathlib is half of the start time
            notes.write(f"{line}\n")


class StdioWire:
    """Lines on standard output."""

    transport = "stdio"

    def frame(self, data: bytes) -> None:
        self.raw(data + b"\n")

    def raw(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]

    def hold(self) -> None:
        return

    def close(self) -> None:
        os.close(1)

    def drop(self) -> None:
        os._exit(1)


def serve(make: type[Server]) -> None:
    """Run a server as the command line says."""
    transport, *arguments = sys.argv[1:]
    server = make(*arguments[:1])
    note("started")
    server.started()
    if transport != "stdio":
        from tests.faults.network import serve_network

        serve_network(server, transport)
        return
    wire = StdioWire()
    for line in sys.stdin.buffer:
        server.take(json.loads(line), wire)
    server.ended()


def wait_for_ever() -> None:
    """Hang, as a deadlock does."""
    while True:
        time.sleep(LONG)
