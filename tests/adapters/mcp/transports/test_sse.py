"""Server-sent events as the settings have them, and as bad servers have them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from squidbot.adapters.mcp.channel import Bounds, ChannelClosed, Frame, Oversize
from squidbot.adapters.mcp.http_outcome import failure_of
from squidbot.adapters.mcp.transport import Opening
from squidbot.adapters.mcp.transports.sse import SSEChannel, open_sse
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError
from tests.adapters.mcp.http_peer import LIMIT, Act, Peer, Visit, config_for, event, peer

pytestmark = pytest.mark.anyio

OPENING = Opening(Bounds(bytes=LIMIT))
ENDPOINT = b"event: endpoint\ndata: /messages?session=1\n\n"


class Server:
    """A good SSE server until it is told otherwise: it echoes what is posted onto its stream."""

    def __init__(self, *, post: Act | None = None) -> None:
        self._post = post
        self._stream: Visit | None = None
        self.end = anyio.Event()

    async def __call__(self, visit: Visit) -> None:
        if visit.asked.method == "GET":
            self._stream = visit
            await visit.stream(ENDPOINT)
            await self.end.wait()
        elif self._post is not None:
            await self._post(visit)
        else:
            await visit.reply(202, b"Accepted")
            await self.say(event({"echo": visit.asked.message}))

    async def say(self, data: bytes) -> None:
        assert self._stream is not None
        await self._stream.raw(data)


def sse(there: Peer, **fields: Any) -> MCPServerConfig:
    return config_for(there.url("/sse"), transport="sse", **fields)


@asynccontextmanager
async def opened(act: Act, **fields: Any) -> AsyncIterator[tuple[Peer, SSEChannel]]:
    async with peer(act) as there, open_sse(sse(there, **fields), OPENING) as channel:
        yield there, channel


async def one(channel: SSEChannel) -> Frame:
    with anyio.fail_after(5):
        (frame,) = await channel.receive()
    return frame


async def answer(channel: SSEChannel) -> dict[str, Any]:
    frame = await one(channel)
    assert isinstance(frame, bytes)
    parsed = json.loads(frame)
    assert isinstance(parsed, dict)
    return parsed


async def refusal(act: Act, **fields: Any) -> MCPConnectionError:
    async with peer(act) as there:
        with anyio.fail_after(5), pytest.raises(MCPConnectionError) as caught:
            async with open_sse(sse(there, **fields), OPENING):
                raise AssertionError("it opened")
    return caught.value


@pytest.mark.requirement("B-02")
async def test_a_message_goes_out_by_post_and_comes_back_by_the_stream() -> None:
    """Url and headers are on both."""
    async with opened(Server(), headers={"X-Team": "squid"}) as (there, channel):
        await channel.send(b'{"id": 1}', 1)
        assert await answer(channel) == {"echo": {"id": 1}}
    assert [(asked.method, asked.path) for asked in there.asked] == [("GET", "/sse"), ("POST", "/messages?session=1")]
    assert all(asked.headers["x-team"] == "squid" for asked in there.asked)
    assert there.asked[1].headers["content-type"] == "application/json"


@pytest.mark.requirement("B-02")
async def test_an_exception_of_the_user_comes_out_as_it_is() -> None:
    """Whoever owns the connection wants its own error back, not a group of one."""
    with pytest.raises(ZeroDivisionError):
        async with opened(Server()):
            raise ZeroDivisionError


@pytest.mark.requirement("B-02", "B-06")
@pytest.mark.parametrize(
    ("status", "permanent"),
    [(400, True), (401, True), (403, True), (404, True), (405, True), (408, False), (429, False), (500, False)],
)
async def test_a_status_instead_of_a_stream_is_named(status: int, permanent: bool) -> None:
    """Whether to try again, and when, depends on it."""

    async def act(visit: Visit) -> None:
        await visit.reply(status, b"no", Retry_After="9")

    error = await refusal(act)
    assert (error.status, error.permanent, error.retry_after, error.server) == (status, permanent, 9.0, "there")
    assert f"HTTP {status}" in str(error)


async def wrong_kind(visit: Visit) -> None:
    await visit.reply(200, b"<html>", Content_Type="text/html")


async def silent(visit: Visit) -> None:
    await visit.until_hung_up()


async def no_endpoint(visit: Visit) -> None:
    await visit.stream(b": keepalive\n\n", event({"hello": 1}))
    await visit.until_hung_up()


async def ends(visit: Visit) -> None:
    await visit.stream()


async def endless(visit: Visit) -> None:
    await visit.stream(b"data: " + b"x" * LIMIT * 21)


async def reset(visit: Visit) -> None:
    visit.reset()


async def garbage(visit: Visit) -> None:
    await visit.raw(b"\x00\x01\x02\r\n\r\n")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (wrong_kind, "'text/html' instead of a stream"),
        (silent, "did not answer within 0.5 s"),
        (no_endpoint, "did not say where it takes messages within 0.5 s"),
        (ends, "ended the stream before it said"),
        (endless, "without end"),
        (reset, "connection"),
        (garbage, "does not speak HTTP"),
    ],
)
async def test_a_stream_that_never_begins_is_an_error_in_time(act: Act, words: str) -> None:
    """The SDK waits for ever for a server that does not say where messages go."""
    assert words in str(await refusal(act, timeout=0.5))


async def test_nobody_listening_is_named() -> None:
    """With what to look at."""
    async with peer(silent) as there:
        pass
    with pytest.raises(MCPConnectionError, match="connection refused by") as caught:
        async with open_sse(sse(there), OPENING):
            pass
    assert caught.value.hint


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "//127.0.0.1:{port}/",
        "http://me:pw@127.0.0.1:{own}/m",
        "https://127.0.0.1:{own}/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://[",
    ],
)
async def test_messages_are_never_sent_to_another_origin(target: str) -> None:
    """They carry our token, and a server could point them at anything that only we can reach."""
    async with peer(silent) as trap:

        async def act(visit: Visit) -> None:
            own = visit.asked.headers["host"].rpartition(":")[2]
            await visit.stream(f"event: endpoint\ndata: {target.format(port=trap.port, own=own)}\n\n".encode())
            await visit.until_hung_up()

        error = await refusal(act)
        assert "refused" in str(error)
        assert "pw" not in str(error)
        assert error.permanent
        assert trap.asked == []


async def test_the_stream_may_not_be_redirected_to_another_origin() -> None:
    """Nor may its token."""
    async with peer(silent) as trap:

        async def act(visit: Visit) -> None:
            await visit.reply(307, Location=trap.url())

        assert "that is not followed" in str(await refusal(act))
        assert trap.asked == []


async def refuse(visit: Visit, *, status: int) -> None:
    await visit.reply(status, b"Could not find session", Retry_After="3")


@pytest.mark.requirement("B-02")
@pytest.mark.parametrize("status", [401, 404, 429, 500])
async def test_a_message_that_is_refused_is_answered_at_once(status: int) -> None:
    """The SDK never looks at the answer to a POST, and the call waits for ever."""
    async with opened(Server(post=partial(refuse, status=status))) as (_, channel):
        await channel.send(b'{"id": 7}', 7)
        error = await answer(channel)
        told = failure_of(error["error"]["data"])
        assert error["id"] == 7
        assert told is not None
        assert (told.status, told.retry_after, told.session_lost) == (status, 3.0, status == 404)


async def test_a_message_that_is_lost_is_answered_at_once_and_the_stream_lives_on() -> None:
    """One reset is one call's."""
    calls = 0

    async def post(visit: Visit) -> None:
        nonlocal calls
        calls += 1
        await (reset(visit) if calls == 1 else visit.reply(500))

    async with opened(Server(post=post)) as (_, channel):
        await channel.send(b"{}", "a")
        assert (await answer(channel))["id"] == "a"
        await channel.send(b"{}", "b")
        assert (await answer(channel))["id"] == "b"


@pytest.mark.requirement("B-09")
async def test_messages_are_on_their_way_side_by_side() -> None:
    """Some servers answer a POST only when the call is done."""
    waiting = 0
    everybody = anyio.Event()

    async def post(visit: Visit) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 64:
            everybody.set()
        await everybody.wait()
        await visit.reply(500)

    async with opened(Server(post=post)) as (_, channel):
        for number in range(64):
            await channel.send(b"{}", number)
        seen = 0
        with anyio.fail_after(10):
            while seen < 64:
                seen += len(await channel.receive())


async def test_what_follows_a_notification_does_not_overtake_it() -> None:
    """A server refuses requests that come before `initialized`."""
    came: list[int] = []
    held = anyio.Event()

    async def post(visit: Visit) -> None:
        number = visit.asked.message["n"]
        if number == 0:
            await held.wait()
        came.append(number)
        await visit.reply(500 if number else 202)

    async with opened(Server(post=post)) as (_, channel):
        await channel.send(b'{"method": "notifications/initialized", "n": 0}', None)
        await channel.send(b'{"n": 1}', 1)
        held.set()
        await one(channel)
        assert came == [0, 1]


@pytest.mark.requirement("B-14")
async def test_what_a_server_is_told_and_does_not_take_delays_no_call() -> None:
    """Neither our words nor our answers, however many: only calls are waited for."""

    async def post(visit: Visit) -> None:
        if visit.asked.message.get("n") == 1:
            await visit.reply(500)
        else:
            await visit.until_hung_up()

    async with opened(Server(post=post)) as (_, channel):
        with anyio.fail_after(3):
            for number in range(30):
                await channel.send(b'{"method": "notifications/progress"}', None)
                await channel.send(b'{"id": "%d", "result": {}}' % number, None)
            await channel.send(b'{"n": 1}', 1)
            await one(channel)
        with anyio.move_on_after(0.2) as full:
            for number in range(64):
                await channel.send(b'{"id": "%d", "result": {}}' % number, None)
        assert full.cancelled_caught
        with anyio.fail_after(3):
            await channel.send(b'{"n": 1}', 1)
            await one(channel)


async def test_hanging_up_follows_a_cancelled_call() -> None:
    """A server that never answers a POST must not collect them."""
    came, hung_up = anyio.Event(), anyio.Event()

    async def post(visit: Visit) -> None:
        if "id" in visit.asked.message:
            came.set()
            await visit.until_hung_up()
            hung_up.set()
        else:
            await visit.reply(202)

    async with opened(Server(post=post)) as (_, channel):
        await channel.send(b'{"id": 7}', 7)
        with anyio.fail_after(5):
            await came.wait()
        await channel.send(b'{"method": "notifications/cancelled", "params": {"requestId": 7}}', None)
        with anyio.fail_after(5):
            await hung_up.wait()


async def test_an_event_too_large_leaves_its_ends_and_the_stream_lives_on() -> None:
    """The SDK's connection dies of it."""
    server = Server()
    async with opened(server) as (_, channel):
        await server.say(event({"id": 5, "x": "x" * LIMIT}) + event({"fine": 1}))
        frames: list[Frame] = []
        with anyio.fail_after(5):
            while len(frames) < 2:
                frames += await channel.receive()
        large, fine = frames
        assert isinstance(large, Oversize)
        assert b'"id": 5' in large.head
        assert fine == b'{"fine": 1}'


async def test_a_flood_waits_until_it_is_taken() -> None:
    """Else one server could fill the memory while we are busy."""
    server = Server()
    async with opened(server) as (_, channel):
        body = event({"x": "x" * 10_000})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.say, body * 2_000)
            taken = 0
            most = 0
            with anyio.fail_after(20):
                while taken < 2_000:
                    frames = await channel.receive()
                    taken += len(frames)
                    most = max(most, sum(len(frame) for frame in frames if isinstance(frame, bytes)))
        assert most < 10 * LIMIT


@pytest.mark.requirement("B-02")
async def test_silence_past_sse_read_timeout_ends_the_channel() -> None:
    """A connection that a router forgot looks like this."""
    async with opened(Server(), sse_read_timeout=0.3) as (_, channel):
        with anyio.fail_after(5), pytest.raises(ChannelClosed, match=r"nothing came from .* for 0\.3 s"):
            await channel.receive()
        with pytest.raises(ChannelClosed):
            await channel.send(b"{}", 1)


@pytest.mark.parametrize("last", [b"", b'data: {"half'], ids=["ended", "half an event"])
async def test_the_end_of_the_stream_ends_the_channel(last: bytes) -> None:
    """Whoever waits must hear of it at once."""
    server = Server()
    async with opened(server) as (_, channel):
        await server.say(event({"before": 1}) + last)
        server.end.set()
        assert await answer(channel) == {"before": 1}
        with anyio.fail_after(5), pytest.raises(ChannelClosed, match="ended the stream"):
            await channel.receive()
