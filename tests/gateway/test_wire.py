"""The HTTP server under the gateway: nobody holds a connection for ever, and nobody fills the memory with a head."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from anyio.abc import SocketStream
from starlette.types import Receive, Scope, Send

from squidbot.gateway.wire import MAX_HEAD, BoundedProtocol, HTTPServer
from tests.fixtures.running import until

pytestmark = pytest.mark.anyio


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}
    )
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def _serving() -> AsyncIterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = HTTPServer(_app)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        await server.ready.wait()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True


async def _rest(stream: SocketStream) -> bytes:
    """All that comes until the other side hangs up."""
    said = b""
    with anyio.fail_after(20):
        try:
            while True:
                said += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return said


async def test_requests_are_answered_one_after_another_on_one_connection() -> None:
    """What is bounded must still be HTTP: kept alive, with pipelining and bodies in pieces."""
    async with _serving() as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nab")
        await stream.send(b"cd")
        await stream.send(b"POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nef")
        await stream.send(b"POST /c HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\nconnection: close\r\n\r\ng")
        said = await _rest(stream)
    assert said.count(b"200 OK") == 3
    assert said.index(b"abcd") < said.index(b"ef") < said.index(b"\r\n\r\ng")
    assert b"server:" not in said.lower()


@pytest.mark.parametrize(
    "beginning",
    [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\n", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc"],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
async def test_a_request_that_never_ends_is_hung_up_on(beginning: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """T15: a thousand of them would be all connections there are."""
    monkeypatch.setattr(BoundedProtocol, "patience", 0.2)
    async with _serving() as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        if beginning:
            await stream.send(beginning)
        assert b"408" in await _rest(stream)


async def test_one_who_drips_is_hung_up_on_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """T15: the time is for the whole request, not for the next byte."""
    monkeypatch.setattr(BoundedProtocol, "patience", 0.3)
    async with _serving() as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(b"GET / HTTP/1.1\r\n")

        async def drip() -> None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while True:
                    await stream.send(b"x: y\r\n")
                    await anyio.sleep(0.02)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drip)
            assert b"408" in await _rest(stream)
            await stream.aclose()


async def test_a_head_without_end_is_refused() -> None:
    """The parser itself would keep all of it."""
    async with _serving() as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(b"GET / HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * MAX_HEAD)
        assert b"431" in await _rest(stream)


@pytest.mark.parametrize("lines", [1, 100, 8_000])
async def test_a_head_is_as_large_as_it_is_however_it_arrives(lines: int) -> None:
    """T15: what comes whole in one read is bounded as what comes in pieces."""
    fields = b"".join(b"x-%d: %s\r\n" % (number, b"a" * (MAX_HEAD // lines)) for number in range(lines))
    head = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + fields + b"\r\n"
    async with _serving() as port:
        for size in (len(head), 1_000):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                with suppress(anyio.BrokenResourceError):
                    for start in range(0, len(head), size):
                        await stream.send(head[start : start + size])
                assert b"431" in await _rest(stream)


async def test_a_line_that_is_too_long_is_refused() -> None:
    """The first line is part of the head."""
    async with _serving() as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(b"GET /" + b"a" * MAX_HEAD + b" HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b"431" in await _rest(stream)


async def test_a_head_behind_a_large_body_is_no_larger_for_it() -> None:
    """A client that sends its next request at once must not be refused for the size of the last one."""
    async with _serving() as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        body = b"b" * (3 * MAX_HEAD)
        first = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        await stream.send(first + b"GET /next HTTP/1.1\r\nhost")
        await stream.send(b": x\r\nx-large: " + b"a" * (MAX_HEAD - 200) + b"\r\n\r\n")
        await stream.send(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        said = await _rest(stream)
    assert said.count(b"200 OK") == 3


async def test_one_who_has_just_come_is_still_answered_at_the_end() -> None:
    """P14: a request that is on its way when the gateway ends is told so, not cut off."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = HTTPServer(_app)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        await server.ready.wait()
        async with await anyio.connect_tcp("127.0.0.1", listener.getsockname()[1]) as stream:
            await until(lambda: server.server_state.connections, what="the connection to be taken")
            server.should_exit = True
            await until(lambda: not server.servers[0].is_serving(), what="the end to begin")
            await stream.send(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert b"200 OK" in await _rest(stream)
