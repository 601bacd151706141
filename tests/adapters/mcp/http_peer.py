"""A web server that does exactly what a test tells it to, byte for byte, and notes what it was asked."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.protocol import MCPError
from squidbot.adapters.mcp.stream_dispatcher import StreamDispatcher
from squidbot.adapters.mcp.transport import Opening
from squidbot.adapters.mcp.transports.http import open_http
from squidbot.config.schema import MCPServerConfig

LIMIT = 50_000
"""Bytes of one message in these tests."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        parsed = json.loads(self.body)
        assert isinstance(parsed, dict)
        return parsed


class Visit:
    """One request, and the means to answer it well or badly."""

    def __init__(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked = asked
        self._reader = reader
        self._writer = writer

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    async def result(self, result: Mapping[str, Any], **headers: str) -> None:
        message = {"jsonrpc": "2.0", "id": self.asked.message["id"], "result": result}
        await self.reply(200, json.dumps(message).encode(), Content_Type="application/json", **headers)

    async def stream(self, *parts: bytes, **headers: str) -> None:
        lines = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode() + b"".join(parts))

    def reset(self) -> None:
        self._writer.transport.abort()

    async def until_hung_up(self) -> None:
        await self._reader.read()


Act = Callable[[Visit], Awaitable[None]]


@dataclass(slots=True)
class Peer:
    port: int
    scheme: str = "http"
    asked: list[Asked] = field(default_factory=list)

    def url(self, path: str = "/mcp") -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    def methods(self) -> list[str]:
        return [asked.method for asked in self.asked]


@asynccontextmanager
async def peer(act: Act, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    """Serve until the block is left; each connection takes one request."""
    tasks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                asked = await _read(reader)
                here.asked.append(asked)
                await act(Visit(asked, reader, writer))
        except asyncio.CancelledError:
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    here = Peer(server.sockets[0].getsockname()[1], "https" if tls else "http")
    try:
        yield here
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Asked(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


def event(message: Mapping[str, Any], **fields: str) -> bytes:
    lines = [f"{name}: {value}" for name, value in fields.items()]
    return "\n".join([*lines, f"data: {json.dumps(message)}", "", ""]).encode()


def config_for(url: str, **fields: Any) -> MCPServerConfig:
    return MCPServerConfig.model_validate({"name": "there", "url": url, "transport": "http", **fields}).resolved()


@asynccontextmanager
async def wire(config: MCPServerConfig, *, opening: Opening | None = None) -> AsyncIterator[StreamDispatcher]:
    """Requests to `config`'s server as squidbot sends them."""

    async def nobody(*_: Any) -> Any:
        raise MCPError(-32601, "nobody answers here")

    async def ignored(*_: Any) -> None:
        return

    async with open_http(config, opening or Opening(Bounds(bytes=LIMIT))) as streams:
        dispatcher = StreamDispatcher(*streams)
        async with anyio.create_task_group() as tasks:
            await tasks.start(dispatcher.run, nobody, ignored)
            yield dispatcher
            tasks.cancel_scope.cancel()


async def failure(dispatcher: StreamDispatcher, method: str = "tools/call", *, timeout: float = 5) -> MCPError:
    """The error of one request, which must fail."""
    try:
        result = await dispatcher.send_raw_request(method, {"name": "x"}, {"timeout": timeout})
    except MCPError as error:
        return error
    raise AssertionError(f"it worked: {result}")
