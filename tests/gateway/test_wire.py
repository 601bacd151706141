"""The HTTP server under the gateway: nobody holds a connection for ever, and nobody fills the memory with a head."""

import http.client
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread
import pytest
from anyio.abc import SocketStream
from starlette.types import ASGIApp, Receive, Scope, Send

from squidbot.gateway import wire
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
async def _serving(app: ASGIApp = _app) -> AsyncIterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = HTTPServer(app)
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


async def _refuses(scope: Scope, receive: Receive, send: Send) -> None:
    """Knows by the head alone that it does not want the body."""
    connection = [(b"connection", b"close")] if scope["path"] == "/close" else []
    await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"2"), *connection]})
    await send({"type": "http.response.body", "body": b"no"})


def _posted(port: int, path: str, size: int, **headers: str) -> tuple[int, bytes]:
    """What a client that sends all of its request before it looks for an answer sees."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", path, body=b"a" * size, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "headers"),
    [("/", {}), ("/close", {}), ("/", {"Connection": "close"})],
    ids=["kept", "closed by us", "closed by the client"],
)
async def test_an_answer_that_comes_before_the_body_was_read_is_seen(path: str, headers: dict[str, str]) -> None:
    """A connection that is closed with something unread in it is reset, and the reset takes the answer with it."""
    async with _serving(_refuses) as port:
        for _ in range(4):
            answer = await anyio.to_thread.run_sync(lambda: _posted(port, path, 30 * 2**20, **headers))
            assert answer == (401, b"no")


async def test_who_has_their_answer_and_sends_for_ever_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """T15: to read on is a courtesy, within bounds of time and of size, and no second answer comes of it."""
    for name, value, path in (("_LINGER", 0.3, b"/close"), ("_MOST_DROPPED", 300_000, b"/"), ("patience", 0.3, b"/")):
        with monkeypatch.context() as bounds:
            bounds.setattr(BoundedProtocol if name == "patience" else wire, name, value)
            async with _serving(_refuses) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(b"POST " + path + b" HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")

                async def send(to: SocketStream = stream) -> None:
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                        while True:
                            await to.send(b"2710\r\n" + b"a" * 10_000 + b"\r\n")
                            await anyio.sleep(0.005)

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(send)
                    said = await _rest(stream)
                    await stream.aclose()
            assert said.startswith(b"HTTP/1.1 401"), name
            assert said.endswith(b"no"), name


async def test_who_has_their_answer_and_breaks_off_gets_no_second_one() -> None:
    """What can no longer be read has nobody to answer."""
    for path in (b"/", b"/close"):
        async with _serving(_refuses) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"POST " + path + b" HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab")
            assert b"401" in await stream.receive()
            await stream.send(b"cdeX no chunk\r\n")
            assert await _rest(stream) == b""


async def test_a_request_behind_one_that_was_answered_early_is_answered_too() -> None:
    """What nobody wanted to read is forgotten, and what comes after it is not."""
    async with _serving(_refuses) as port, await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n" + b"a" * 100_000)
        assert b"401" in await stream.receive()
        await stream.send(b"a" * 100_000 + b"GET /close HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await _rest(stream)).count(b"401") == 1


async def test_who_connected_in_the_last_moment_is_still_answered() -> None:
    """P14: the system takes connections before we do; those that nobody has looked at would be reset."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = HTTPServer(_app)
    clients: list[socket.socket] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        await server.ready.wait()
        server.should_exit = True
        port = listener.getsockname()[1]
        ending = server.shutdown

        async def crowded(sockets: list[socket.socket] | None = None) -> None:
            for _ in range(20):
                clients.append(socket.create_connection(("127.0.0.1", port)))
                clients[-1].sendall(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            await ending(sockets)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))

        server.shutdown = crowded  # type: ignore[method-assign]
    for client in clients:
        with client:
            assert client.recv(1_000).startswith(b"HTTP/1.1 200")
