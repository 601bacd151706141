"""WebSocket as the settings have it, and as bad servers have it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.typing import Subprotocol

from squidbot.adapters.mcp import network
from squidbot.adapters.mcp.channel import Bounds, ChannelClosed, Oversize
from squidbot.adapters.mcp.transport import Opening
from squidbot.adapters.mcp.transports.websocket import WebSocketChannel, open_websocket
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError
from tests.adapters.mcp.certificates import Authority

pytestmark = pytest.mark.anyio

LIMIT = 50_000
OPENING = Opening(Bounds(bytes=LIMIT))
Talk = Callable[[ServerConnection], Awaitable[None]]


def config_for(url: str, **fields: Any) -> MCPServerConfig:
    return MCPServerConfig.model_validate({"name": "there", "url": url, **fields}).resolved()


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


@asynccontextmanager
async def serving(talk: Talk, *, tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[str]:
    options.setdefault("subprotocols", [Subprotocol("mcp")])

    async def guarded(connection: ServerConnection) -> None:
        try:
            await talk(connection)
        except ConnectionClosed:
            return

    async with serve(guarded, "127.0.0.1", 0, ssl=tls, **options) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"{'wss' if tls else 'ws'}://127.0.0.1:{port}/path"


@asynccontextmanager
async def opened(talk: Talk, **options: Any) -> AsyncIterator[WebSocketChannel]:
    async with serving(talk, **options) as url, open_websocket(config_for(url), OPENING) as channel:
        yield channel


@asynccontextmanager
async def raw(reply: bytes, *, hold: bool = False) -> AsyncIterator[str]:
    """A server that says `reply` to whatever it is asked."""
    done = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        writer.write(reply)
        if hold:
            await done.wait()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        done.set()


async def refusal(url: str, **fields: Any) -> MCPConnectionError:
    with anyio.fail_after(10), pytest.raises(MCPConnectionError) as caught:
        async with open_websocket(config_for(url, **fields), OPENING):
            raise AssertionError("it opened")
    return caught.value


@pytest.mark.requirement("B-03")
async def test_messages_go_both_ways_as_text_on_one_connection() -> None:
    """All calls share it, with the url, the headers and the subprotocol of the settings."""
    seen: list[tuple[str, str | None, str | None]] = []
    kinds: list[type] = []

    async def talk(connection: ServerConnection) -> None:
        assert connection.request is not None
        seen.append((connection.request.path, connection.request.headers.get("X-Team"), connection.subprotocol))
        async for message in connection:
            kinds.append(type(message))
            await connection.send(message)

    async with serving(talk) as url, open_websocket(config_for(url, headers={"X-Team": "squid"}), OPENING) as channel:
        for number in range(3):
            await channel.send(b"%d" % number, number)
        assert [await channel.receive() for _ in range(3)] == [[b"0"], [b"1"], [b"2"]]
    assert seen == [("/path", "squid", "mcp")]
    assert kinds == [str] * 3


@pytest.mark.requirement("B-03")
async def test_wss_is_checked_and_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An authority that nobody trusts is refused; one that the machine trusts is not, unless its word has expired."""
    authority = Authority(tmp_path)
    async with serving(echo, tls=authority.server()) as url:
        error = await refusal(url)
        assert "is not trusted" in str(error)
        assert error.hint is not None
        assert "SSL_CERT_FILE" in error.hint
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        network.tls.cache_clear()
        try:
            async with open_websocket(config_for(url), OPENING) as channel:
                await channel.send(b"hi", 1)
                assert await channel.receive() == [b"hi"]
            async with serving(echo, tls=authority.server(expired=True)) as expired:
                assert "certificate has expired" in str(await refusal(expired))
        finally:
            network.tls.cache_clear()


async def test_a_server_without_the_subprotocol_is_accepted() -> None:
    """Many do not echo it, and speak the protocol all the same."""
    async with opened(echo, subprotocols=None) as channel:
        await channel.send(b"hi", 1)
        assert await channel.receive() == [b"hi"]


async def test_binary_and_bad_utf8_are_frames_like_others() -> None:
    """What is in them is one call's trouble, never the connection's."""

    async def talk(connection: ServerConnection) -> None:
        await connection.send(b'{"binary": 1}')
        await connection.send(b'{"bad": "\xff"}', text=True)
        await connection.wait_closed()

    async with opened(talk) as channel:
        assert await channel.receive() == [b'{"binary": 1}']
        assert await channel.receive() == [b'{"bad": "\xff"}']


async def test_a_message_too_large_leaves_its_ends_and_the_connection_lives_on() -> None:
    """Up to four times the bound: one call fails, the others go on."""

    async def talk(connection: ServerConnection) -> None:
        await connection.send('{"id": 5, "x": "' + "x" * LIMIT + '"}')
        await connection.send("fine")
        await connection.wait_closed()

    async with opened(talk) as channel:
        (large,) = await channel.receive()
        assert isinstance(large, Oversize)
        assert b'"id": 5' in large.head
        assert large.limit == LIMIT
        assert await channel.receive() == [b"fine"]


async def drop(connection: ServerConnection) -> None:
    connection.transport.abort()


async def too_much(connection: ServerConnection) -> None:
    await connection.send("x" * (4 * LIMIT + 1))


async def leave(connection: ServerConnection) -> None:
    await connection.close(1000)


async def fail(connection: ServerConnection) -> None:
    await connection.close(1011, "out of order")


async def break_rules(connection: ServerConnection) -> None:
    connection.transport.write(b"\xff\xff\xff\xff")
    await connection.wait_closed()


@pytest.mark.requirement("B-03")
@pytest.mark.parametrize(
    ("talk", "words"),
    [
        (drop, "broke off"),
        (too_much, "larger than 0.2 MB"),
        (leave, "code 1000"),
        (fail, "code 1011: out of order"),
        (break_rules, "broke the rules"),
    ],
)
async def test_the_end_of_a_connection_is_told_with_its_reason(talk: Talk, words: str) -> None:
    """Whoever waits hears of it at once, and a person reads why."""
    async with opened(talk) as channel:
        with anyio.fail_after(5), pytest.raises(ChannelClosed, match=words):
            await channel.receive()
        with anyio.fail_after(5), pytest.raises(ChannelClosed, match=words):
            await channel.send(b"x", 1)


async def test_a_flood_of_pings_hinders_nothing() -> None:
    """They are answered underneath."""

    async def talk(connection: ServerConnection) -> None:
        for _ in range(2_000):
            await connection.ping()
        await echo(connection)

    async with opened(talk) as channel:
        await channel.send(b"hi", 1)
        with anyio.fail_after(10):
            assert await channel.receive() == [b"hi"]


@pytest.mark.requirement("B-03", "B-06")
@pytest.mark.parametrize(("status", "permanent"), [(401, True), (403, True), (404, True), (429, False), (503, False)])
async def test_a_status_instead_of_a_connection_is_named(status: int, permanent: bool) -> None:
    """The same words as over the other transports."""

    def refuse(connection: ServerConnection, request: Request) -> Response:
        response = connection.respond(HTTPStatus(status), "no")
        response.headers["Retry-After"] = "9"
        return response

    async with serving(echo, process_request=refuse) as url:
        error = await refusal(url)
    assert (error.status, error.permanent, error.retry_after, error.server) == (status, permanent, 9.0, "there")


async def test_a_redirect_is_not_followed_anywhere() -> None:
    """The headers carry a token for one server."""
    visits: list[object] = []

    async def trap(connection: ServerConnection) -> None:
        visits.append(connection)

    async with serving(trap) as elsewhere:
        reply = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n".encode()
        async with raw(reply) as url:
            error = await refusal(url)
    assert error.status == 302
    assert visits == []


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\x00\x01garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nX: " + b"x" * 20000 + b"\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ],
    ids=["hung up", "garbage", "plain answer", "oversize header", "no key"],
)
async def test_what_is_no_websocket_is_told_as_such(reply: bytes) -> None:
    """No traceback, and nothing that hangs."""
    async with raw(reply) as url:
        error = await refusal(url)
    assert "does not speak WebSocket" in str(error) or error.status == 200


async def test_silence_while_connecting_ends_at_the_timeout() -> None:
    """The settings say how long a person waits."""
    async with raw(b"", hold=True) as url:
        assert "did not answer within 0.3 s" in str(await refusal(url, timeout=0.3))


async def test_nobody_listening_and_no_such_host_are_named() -> None:
    """The two commonest mistakes in a url."""
    async with raw(b"") as url:
        pass
    assert "connection refused by 127.0.0.1" in str(await refusal(url))
    assert "cannot be found" in str(await refusal("ws://nowhere.invalid/"))


async def test_tls_to_a_plain_port_is_named_and_plain_text_is_not_tried() -> None:
    """A fallback would send the token in the open."""
    async with raw(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        assert "no TLS with" in str(await refusal(url.replace("ws:", "wss:")))


async def test_settings_that_cannot_be_sent_are_permanent_errors() -> None:
    """Trying again cannot help, and a secret is not shown."""
    config = config_for("ws://127.0.0.1:1/")
    with pytest.raises(MCPConnectionError, match="no valid url") as caught:
        async with open_websocket(config.model_copy(update={"url": "nonsense"}), OPENING):
            pass
    assert caught.value.permanent
    async with serving(echo) as url:
        config = config_for(url).model_copy(update={"headers": {"X": "snow \N{SNOWMAN} man"}})
        with pytest.raises(MCPConnectionError, match="cannot carry") as caught:
            async with open_websocket(config, OPENING):
                pass
    assert "\N{SNOWMAN}" not in str(caught.value)


async def test_leaving_a_flood_under_cancellation_leaves_no_task_and_no_socket() -> None:
    """A connection that nobody closes any more is read for ever."""
    flooding = anyio.Event()

    async def flood(connection: ServerConnection) -> None:
        while True:
            await connection.send(b"x" * 10_000)
            flooding.set()

    async with serving(flood) as url:
        with anyio.CancelScope() as scope:
            async with open_websocket(config_for(url), OPENING) as channel:
                await flooding.wait()
                scope.cancel()
                await anyio.sleep_forever()
        assert channel._connection.state is State.CLOSED
        assert channel._connection.connection_lost_waiter.done()


async def test_a_flood_of_pings_leaves_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is read at once is handled at once: 256 KB of pings would stop the whole process."""
    bites: list[int] = []
    take = ClientConnection.data_received

    def noted(connection: ClientConnection, data: bytes) -> None:
        bites.append(len(data))
        take(connection, data)

    async def flood(connection: ServerConnection) -> None:
        connection.transport.write(b"\x89\x00" * 50_000)
        await connection.send(b"done")
        await connection.wait_closed()

    monkeypatch.setattr(ClientConnection, "data_received", noted)
    async with opened(flood) as channel:
        assert await channel.receive() == [b"done"]
    assert sum(bites) > 100_000
    assert max(bites) <= 10_000
