"""The wire: every call ends with its own answer or with a reason, whatever the server sends."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.dispatcher import CallOptions
from mcp.shared.memory import create_client_server_memory_streams
from mcp_types import CONNECTION_CLOSED

from squidbot.adapters.mcp.channel import Bounds, ChannelClosed, Oversize
from squidbot.adapters.mcp.dispatcher import FrameDispatcher, WireError, fresh_id
from squidbot.adapters.mcp.protocol import MCPError
from squidbot.adapters.mcp.stream_dispatcher import StreamDispatcher
from tests.fakes.channel import ScriptedChannel
from tests.fixtures.running import until

pytestmark = pytest.mark.anyio


async def _deny(context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    raise MCPError(-32601, f"no {method} here")


async def _ignore(context: Any, method: str, params: Mapping[str, Any] | None) -> None:
    """Nobody listens."""


@asynccontextmanager
async def talking(channel: ScriptedChannel, *, bounds: Bounds | None = None) -> AsyncIterator[FrameDispatcher]:
    """A dispatcher that runs over `channel`."""
    dispatcher = FrameDispatcher(channel, server="s", bounds=bounds or Bounds())
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run, _deny, _ignore)
        yield dispatcher
        tasks.cancel_scope.cancel()


async def _call(dispatcher: FrameDispatcher, name: str = "a", **options: Any) -> dict[str, Any]:
    given: CallOptions = {"timeout": 5.0, **options}  # type: ignore[typeddict-item]
    return await dispatcher.send_raw_request("tools/call", {"name": name}, given)


async def _outcome(dispatcher: FrameDispatcher, **options: Any) -> MCPError:
    """How a call fails."""
    with pytest.raises(MCPError) as failure:
        await _call(dispatcher, **options)
    return failure.value


@asynccontextmanager
async def asking(**options: Any) -> AsyncIterator[tuple[ScriptedChannel, Any, "asyncio.Task[MCPError]"]]:
    """One call under way that is to fail: its channel, its id, and the task that brings the failure."""
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher:
        task = asyncio.create_task(_outcome(dispatcher, **options))
        request = await channel.request("tools/call")
        yield channel, request["id"], task


# Answers


@pytest.mark.requirement("B-09")
async def test_answers_reach_their_calls_whatever_their_order() -> None:
    """Calls run side by side; the quickest answer comes first."""
    channel = ScriptedChannel()
    results: dict[int, dict[str, Any]] = {}

    async def one(number: int) -> None:
        results[number] = await _call(dispatcher, str(number))

    async with talking(channel) as dispatcher, anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(one, number)
        sent = await channel.heard(50)
        channel.say(*({"id": request["id"], "result": {"for": request["params"]["name"]}} for request in sent[::-1]))
    assert results == {number: {"for": str(number)} for number in range(50)}


async def test_ids_cannot_be_guessed_and_fit_every_parser() -> None:
    """A server that answers the next call before it is made must not succeed."""
    ids = [fresh_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert max(ids) < 2**53
    assert sum(abs(first - second) > 2**30 for first, second in pairwise(ids)) > 990


async def test_an_id_of_the_callers_own_is_used_and_not_used_twice() -> None:
    """Subscriptions are told apart by the ids that the SDK gave them."""
    async with asking(request_id="listen-1") as (channel, request_id, task):
        assert request_id == "listen-1"
        channel.say({"id": "listen-1", "error": {"code": 1, "message": "no"}})
        assert (await task).error.message == "no"
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: _call(dispatcher, request_id=7))
        await channel.heard(1)
        with pytest.raises(ValueError, match="already in flight"):
            await _call(dispatcher, request_id=7)
        tasks.cancel_scope.cancel()


async def test_a_servers_error_comes_with_its_code_words_and_data() -> None:
    """What the server says of its own failure is worth more than what we could say."""
    async with asking() as (channel, request_id, task):
        channel.say({"id": request_id, "error": {"code": -5, "message": "disk full", "data": {"free": 0}}})
        error = await task
    assert not isinstance(error, WireError)
    assert (error.code, error.error.message, error.error.data) == (-5, "disk full", {"free": 0})


async def test_an_id_that_comes_back_as_a_string_is_understood() -> None:
    """Some servers turn numbers into strings on the way."""
    async with asking() as (channel, request_id, task):
        channel.say({"id": str(request_id), "error": {"code": 1, "message": "yes"}})
        assert (await task).error.message == "yes"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"result": {}, "error": {"code": 1, "message": "x"}}, "a result and an error"),
        ({}, "neither a result nor an error"),
        ({"result": None}, "its result is no object"),
        ({"result": [1]}, "its result is no object"),
        ({"error": "broken"}, "the server's error is no object"),
    ],
)
async def test_an_answer_that_is_none_fails_its_call_with_the_reason(answer: dict[str, Any], reason: str) -> None:
    """A call must not wait for a second answer that never comes."""
    async with asking() as (channel, request_id, task):
        channel.say({"id": request_id, **answer})
        error = await task
    assert isinstance(error, WireError)
    assert error.kind == "protocol"
    assert reason in error.error.message


async def test_an_error_without_code_or_words_is_still_an_error() -> None:
    """Its call must end, and what can be kept is kept."""
    async with asking() as (channel, request_id, task):
        channel.say({"id": request_id, "error": {"code": True, "message": 7}})
        error = await task
    assert (error.code, error.error.message) == (-32603, "the server gave no reason")


async def test_what_nobody_asked_for_is_dropped_and_counted_and_the_first_answer_wins() -> None:
    """An answer can be forged or repeated, but never take another's place."""
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher:
        channel.say({"id": 1, "result": {"forged": 1}}, {"id": "1", "result": {}})
        task = asyncio.create_task(_call(dispatcher))
        request = await channel.request("tools/call")
        channel.say({"id": request["id"], "result": {"n": 1}}, {"id": request["id"], "result": {"n": 2}})
        assert await task == {"n": 1}
        await until(lambda: dispatcher.counters["unasked"] == 3, what="three answers to be dropped")


# Deadlines


@pytest.mark.requirement("B-10")
async def test_a_call_that_is_not_answered_ends_and_the_server_is_told_and_a_late_answer_is_dropped() -> None:
    """Nobody waits for ever, and a late answer disturbs nobody."""
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher:
        error = await _outcome(dispatcher, timeout=0.05)
        assert isinstance(error, WireError)
        assert (error.kind, error.error.message) == ("timeout", "no answer to tools/call in 0.05 s")
        request, cancelled = await channel.heard(2)
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == request["id"]
        channel.say({"id": request["id"], "result": {}})
        await until(lambda: dispatcher.counters["late"] == 1, what="the late answer to be counted")
        assert dispatcher.counters["unasked"] == 0


@pytest.mark.requirement("B-10")
async def test_a_caller_that_gives_up_is_told_to_the_server_unless_the_request_forbids_it() -> None:
    """The protocol has no way to take back an opening."""
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher:
        for told in (True, False):
            task = asyncio.create_task(_call(dispatcher, cancel_on_abandon=told))
            await channel.heard(len(channel.sent) + 1)
            task.cancel()
            await asyncio.wait([task])
        await channel.heard(3)
        await dispatcher.notify("notifications/last", None)
        sent = await channel.heard(4)
    assert [message["method"] for message in sent].count("notifications/cancelled") == 1


@pytest.mark.requirement("B-10")
async def test_the_deadline_covers_writing_to_a_server_that_does_not_read() -> None:
    """A full pipe is as silent as a hanging server."""
    channel = ScriptedChannel()
    channel.full = True
    async with talking(channel) as dispatcher:
        with anyio.fail_after(2):
            error = await _outcome(dispatcher, timeout=0.05)
        assert isinstance(error, WireError)
        assert error.kind == "timeout"


# The end


@pytest.mark.requirement("B-08")
async def test_when_the_server_goes_every_call_fails_at_once_with_the_reason_and_so_do_later_ones() -> None:
    """Whoever waits must learn of the end when it happens, not at the deadline."""
    channel = ScriptedChannel()
    failures: list[MCPError] = []

    async def one() -> None:
        failures.append(await _outcome(dispatcher, timeout=60))

    async with talking(channel) as dispatcher:
        with anyio.fail_after(2):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(one)
                await channel.heard(10)
                channel.end("it exited with code 9")
            failures.append(await _outcome(dispatcher))
        assert dispatcher.ended.is_set()
        assert str(dispatcher.end) == "it exited with code 9"
    assert {(error.error.message, error.kind) for error in failures if isinstance(error, WireError)} == {
        ("it exited with code 9", "unavailable")
    }
    assert len(failures) == 11


async def test_a_channel_that_refuses_a_message_fails_that_call_with_its_reason() -> None:
    """A write can be the first to notice that the server is gone."""

    class Broken(ScriptedChannel):
        async def send(self, frame: bytes, request_id: int | str | None) -> None:
            raise ChannelClosed("it was killed by SIGKILL")

    async with talking(Broken()) as dispatcher:
        assert (await _outcome(dispatcher)).error.message == "it was killed by SIGKILL"
        await dispatcher.notify("notifications/initialized", None)


async def test_calls_that_wait_when_we_close_fail_and_do_not_hang() -> None:
    """Stopping a server must end what was under way."""
    channel = ScriptedChannel()
    async with anyio.create_task_group() as tasks:
        async with talking(channel) as dispatcher:
            call = asyncio.create_task(_outcome(dispatcher, timeout=60))
            await channel.heard(1)
        with anyio.fail_after(2):
            assert (await call).error.message == "the connection is closed"
        tasks.cancel_scope.cancel()


# What cannot be read


@pytest.mark.requirement("B-14")
async def test_an_unreadable_answer_fails_the_call_that_it_names_at_once_and_no_other() -> None:
    """The call must not wait for its deadline, and its neighbours not suffer."""
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher:
        doomed = asyncio.create_task(_outcome(dispatcher))
        (first,) = await channel.heard(1)
        other = asyncio.create_task(_call(dispatcher))
        second = (await channel.heard(2))[1]
        channel.say(b'{"jsonrpc":"2.0","id":%d,"result":{"cut' % first["id"])
        with anyio.fail_after(0.4):
            error = await doomed
        assert isinstance(error, WireError)
        assert error.kind == "protocol"
        assert "cannot be read: no valid JSON" in error.error.message
        channel.say({"id": second["id"], "result": {"fine": True}})
        assert await other == {"fine": True}


@pytest.mark.requirement("B-14")
async def test_an_answer_over_the_limit_fails_its_call_and_says_the_limit() -> None:
    """A person must learn which bound to raise."""
    async with asking() as (channel, request_id, task):
        channel.say(Oversize(b'{"id": %d, "result"' % request_id, b'"}', 1_000))
        assert "too large (limit 1000 bytes)" in (await task).error.message


async def test_an_unreadable_answer_without_an_id_fails_the_only_call_that_waits_after_a_moment() -> None:
    """It can only be that call's; a good answer that follows at once still wins."""
    async with asking() as (channel, _, task):
        channel.say(b'{"jsonrpc":"2.0"')
        with anyio.fail_after(2):
            assert "cannot be read" in (await task).error.message
    async with asking() as (channel, request_id, task):
        channel.say(b'{"jsonrpc":"2.0"', {"id": request_id, "error": {"code": 1, "message": "the good one"}})
        assert (await task).error.message == "the good one"


@pytest.mark.parametrize("identity", [None, True, 1.5])
async def test_an_error_without_an_id_that_counts_fails_the_only_call_with_the_servers_words(identity: Any) -> None:
    """Servers that cannot read a request answer it so, as JSON-RPC demands."""
    async with asking() as (channel, _, task):
        channel.say({"id": identity, "error": {"code": -32700, "message": "Parse error"}})
        with anyio.fail_after(2):
            assert "Parse error" in (await task).error.message


async def test_with_two_calls_waiting_nobody_is_blamed_for_an_answer_without_an_id() -> None:
    """A wrong guess would fail a call that is well."""
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher:
        calls = [asyncio.create_task(_call(dispatcher)) for _ in range(2)]
        sent = await channel.heard(2)
        channel.say(b'{"jsonrpc":"2.0"')
        done, _ = await asyncio.wait(calls, timeout=0.7)
        assert not done
        channel.say(*({"id": request["id"], "result": {}} for request in sent))
        assert await asyncio.gather(*calls) == [{}, {}]


async def test_a_subscription_is_not_blamed_and_does_not_hide_the_only_call() -> None:
    """In the stateless era one subscription waits for as long as the connection lives."""
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher:
        standing = asyncio.create_task(
            dispatcher.send_raw_request("subscriptions/listen", {}, {"request_id": "listen-1"})
        )
        await channel.heard(1)
        channel.say(b'{"jsonrpc":"2.0"')
        call = asyncio.create_task(_outcome(dispatcher))
        await channel.heard(2)
        channel.say(b'{"jsonrpc":"2.0"')
        with anyio.fail_after(2):
            assert "cannot be read" in (await call).error.message
        assert not standing.done()
        standing.cancel()


async def test_noise_is_counted_and_hurts_nobody() -> None:
    """Banners and stray prints are the most common fault of all."""
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher:
        channel.say(*[b"Listening on stdio...", b"\xff\xfe\x00"] * 300)
        task = asyncio.create_task(_call(dispatcher))
        request = await channel.request("tools/call")
        channel.say({"id": request["id"], "result": {}})
        assert await task == {}
        assert dispatcher.counters["noise"] == 600


# Streams of the SDK's own


@pytest.mark.requirement("B-08", "B-10")
async def test_over_the_sdks_streams_a_request_has_its_deadline_an_unguessable_id_and_a_noticed_end() -> None:
    """Streamable HTTP and servers in memory keep the same promises as far as the SDK lets them."""
    async with create_client_server_memory_streams() as ((read, write), (far_read, far_write)):
        dispatcher = StreamDispatcher(read, write)
        async with anyio.create_task_group() as tasks:
            await tasks.start(dispatcher.run, _deny, _ignore)
            with pytest.raises(WireError, match="no answer to tools/call in 0") as late:
                await dispatcher.send_raw_request("tools/call", {"name": "a"}, {"timeout": 0.05})
            assert late.value.kind == "timeout"
            sent: Any = (await far_read.receive()).message  # type: ignore[union-attr]
            assert sent.params == {"name": "a"}
            assert sent.id > 1_000_000
            async with anyio.create_task_group() as calls:
                calls.start_soon(_lost, dispatcher)
                await far_write.aclose()
            await dispatcher.ended.wait()
            assert str(dispatcher.end) == "the server closed the connection"
            tasks.cancel_scope.cancel()


async def _lost(dispatcher: StreamDispatcher) -> None:
    with pytest.raises(MCPError) as error:
        await dispatcher.send_raw_request("tools/call", {}, {"timeout": 5})
    assert error.value.code == CONNECTION_CLOSED


# Whatever a server sends

identities: st.SearchStrategy[Any] = (
    st.integers() | st.text(max_size=3) | st.booleans() | st.none() | st.floats(allow_nan=False) | st.just([])
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
methods = st.sampled_from(
    [
        "ping",
        "sampling/createMessage",
        "notifications/progress",
        "notifications/message",
        "notifications/cancelled",
        "notifications/tools/list_changed",
    ]
)
hostile = st.fixed_dictionaries(
    {},
    optional={
        "id": identities,
        "method": methods | values,
        "params": values | st.fixed_dictionaries({"progressToken": identities, "progress": values}),
        "result": values,
        "error": values,
    },
)
deeds = st.lists(
    st.tuples(st.sampled_from(["answer", "spell", "error", "cut", "progress"]), st.integers(min_value=0, max_value=2))
    | hostile
    | st.binary(max_size=30)
    | st.binary(max_size=20).map(lambda tail: b'{"jsonrpc":"2.0",' + tail),
    max_size=12,
)


def _deed(deed: Any, sent: list[dict[str, Any]]) -> dict[str, Any] | bytes:
    match deed:
        case ("answer", number):
            return {"id": sent[number]["id"], "result": {"for": sent[number]["params"]["name"]}}
        case ("spell", number):
            return {"id": str(sent[number]["id"]), "result": {"for": sent[number]["params"]["name"]}}
        case ("error", number):
            return {"id": sent[number]["id"], "error": {"code": 1, "message": sent[number]["params"]["name"]}}
        case ("cut", number):
            return b'{"jsonrpc":"2.0","id":%d,"result":{' % sent[number]["id"]
        case ("progress", number):
            params = {"progressToken": sent[number]["id"], "progress": 10**400, "total": 10**400}
            return {"method": "notifications/progress", "params": params}
        case _:
            assert isinstance(deed, dict | bytes)
            return deed


async def _meet(script: list[Any]) -> dict[str, Any]:
    """Three calls against a server that plays `script` and goes away; what each came to."""
    channel = ScriptedChannel()
    outcomes: dict[str, Any] = {}

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        """Progress is heard and forgotten."""

    async def one(name: str) -> None:
        try:
            outcomes[name] = (await _call(dispatcher, name, on_progress=heard))["for"]
        except WireError:
            outcomes[name] = None
        except MCPError as error:
            outcomes[name] = error.error.message

    async with talking(channel) as dispatcher:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for name in ("a", "b", "c"):
                    tasks.start_soon(one, name)
                sent = list(await channel.heard(3))
                for deed in script:
                    channel.say(_deed(deed, sent))
                channel.end()
        assert str(dispatcher.end) == "it exited with code 9", "something else ended the connection"
    return outcomes


@pytest.mark.requirement("B-14", "D-04")
@settings(deadline=None)
@given(deeds)
def test_no_call_ever_gets_anothers_answer_and_every_call_ends(script: list[Any]) -> None:
    """Whatever a server sends, in whatever order, a caller gets its own answer, its own error, or the reason why not."""
    outcomes = asyncio.run(_meet(script))
    assert set(outcomes) == {"a", "b", "c"}
    assert all(outcome in (name, None) for name, outcome in outcomes.items())


@pytest.mark.requirement("B-08", "B-15")
async def test_a_server_that_takes_nothing_any_more_counts_as_gone() -> None:
    """One that closed its input and lives on would otherwise be kept, and never answer again."""
    channel = ScriptedChannel()
    async with talking(channel) as dispatcher:
        channel.deaf = ChannelClosed("it closed its input but still runs")
        failure = await _outcome(dispatcher)
        assert "closed its input" in failure.error.message
        assert dispatcher.ended.is_set()
        assert dispatcher.end is channel.deaf
