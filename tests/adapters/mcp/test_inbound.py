"""What a server sends unasked: heard in order, within bounds, and never able to end the connection."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest
from mcp_types import TextContent

from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.dispatcher import FrameDispatcher
from squidbot.adapters.mcp.inbound import InboundContext
from squidbot.adapters.mcp.protocol import MCPError
from tests.fakes.channel import ScriptedChannel
from tests.fixtures.running import until

pytestmark = pytest.mark.anyio

Params = Mapping[str, Any] | None


class Listener:
    """Notes what is said and answers what is asked, as a client's session does."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, Any]] = []
        self.context: Any = None
        self.asked: list[Any] = []
        self.patience = asyncio.Event()
        self.cancelled: list[str] = []

    async def on_notify(self, context: Any, method: str, params: Params) -> None:
        self.notes.append((method, params))
        if method == "notifications/fault":
            raise RuntimeError("a listener's own fault")

    async def on_request(self, context: Any, method: str, params: Params) -> dict[str, Any]:
        self.context = context
        self.asked.append(context.request_id)
        match method:
            case "refuse":
                raise MCPError(-32001, "not today", {"until": "tomorrow"})
            case "fault":
                raise RuntimeError("/a/path nobody should see")
            case "malformed":
                TextContent.model_validate({"text": 7})
            case "wait":
                try:
                    await self.patience.wait()
                except anyio.get_cancelled_exc_class():
                    self.cancelled.append(method)
                    raise
        return {"method": method}

    def intercept(self, method: str, params: Params) -> bool:
        """Takes what is meant for a subscription."""
        return method == "notifications/mine"


@asynccontextmanager
async def listening(
    *, bounds: Bounds | None = None
) -> AsyncIterator[tuple[ScriptedChannel, Listener, FrameDispatcher]]:
    """A dispatcher that hands everything to a listener."""
    channel, listener = ScriptedChannel(), Listener()
    dispatcher = FrameDispatcher(channel, server="s", bounds=bounds or Bounds())
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run, listener.on_request, listener.on_notify, listener.intercept)
        yield channel, listener, dispatcher
        tasks.cancel_scope.cancel()


# Notifications


@pytest.mark.requirement("G-06")
async def test_notifications_come_in_order_and_a_failing_listener_misses_only_its_own() -> None:
    """A program that listens may have bugs; the connection goes on."""
    async with listening() as (channel, listener, _):
        names = ["notifications/one", "notifications/fault", "notifications/mine", "notifications/two"]
        channel.say(*({"method": name, "params": {"n": 1}} for name in names))
        await until(lambda: len(listener.notes) == 3, what="three notifications")
    assert [method for method, _ in listener.notes] == [names[0], names[1], names[3]]
    assert listener.notes[0][1] == {"n": 1}


@pytest.mark.requirement("B-14")
async def test_a_flood_of_notifications_is_cut_off_and_counted() -> None:
    """One chatty server must not take the loop from all others."""
    async with listening(bounds=Bounds(notifications=50)) as (channel, listener, dispatcher):
        channel.say(*({"method": "notifications/message", "params": {"n": n}} for n in range(2_000)))
        await until(
            lambda: dispatcher.counters["dropped_notifications"] + len(listener.notes) == 2_000,
            what="the flood to have passed",
        )
    assert dispatcher.counters["dropped_notifications"] >= 1_900
    assert listener.notes[0] == ("notifications/message", {"n": 0})


@pytest.mark.requirement("B-14")
async def test_a_few_large_notifications_are_a_flood_as_well() -> None:
    """Whoever listens keeps them, and a hundred of nine megabytes are more than one server is worth."""
    async with listening(bounds=Bounds(bytes=100_000)) as (channel, listener, dispatcher):
        channel.say(*({"method": "notifications/message", "params": {"data": "x" * 4_000}} for _ in range(100)))
        await until(
            lambda: dispatcher.counters["dropped_notifications"] + len(listener.notes) == 100,
            what="the flood to have passed",
        )
    assert 1 <= len(listener.notes) <= 8


@pytest.mark.requirement("B-14")
async def test_for_a_slow_listener_only_so_much_is_kept() -> None:
    """The oldest give way: what a server said a minute ago is no news."""
    slow = asyncio.Event()

    async def on_notify(context: Any, method: str, params: Params) -> None:
        heard.append(params)
        await slow.wait()

    heard: list[Params] = []
    channel = ScriptedChannel()
    dispatcher = FrameDispatcher(channel, server="s", bounds=Bounds(bytes=100_000_000, notifications=10_000))
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run, Listener().on_request, on_notify)
        channel.say(*({"method": "notifications/message", "params": {"n": n}} for n in range(3_000)))
        await until(lambda: dispatcher.counters["unheard"] >= 1_999, what="the oldest to give way")
        slow.set()
        await until(lambda: heard[-1] == {"n": 2_999}, what="the last of them")
        tasks.cancel_scope.cancel()
    assert len(heard) <= 1_002


@pytest.mark.requirement("C-05")
async def test_a_storm_of_changes_is_one_change_and_is_never_lost_in_a_flood() -> None:
    """The list must be looked at once after the last change, however many were announced."""
    change = {"method": "notifications/tools/list_changed"}
    async with listening(bounds=Bounds(notifications=10)) as (channel, listener, _):
        flood = [{"method": "notifications/message", "params": {"n": n}} for n in range(3_000)]
        storm = [{**change, "params": {"_meta": {"n": n}}} for n in range(3_000)]
        channel.say(*flood, *storm)
        await until(
            lambda: ("notifications/tools/list_changed", {"_meta": {"n": 2_999}}) in listener.notes,
            what="the last change",
        )
    assert len(listener.notes) < 100


# Progress


async def test_progress_is_told_in_order_and_before_the_result() -> None:
    """A bar that fills after the answer came is a strange bar."""
    heard: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        heard.append((progress, total, message))

    async with listening() as (channel, _, dispatcher):
        call = asyncio.create_task(dispatcher.send_raw_request("tools/call", {}, {"on_progress": on_progress}))
        request = await channel.request("tools/call")
        token = request["params"]["_meta"]["progressToken"]
        news: list[dict[str, Any]] = [
            {"progress": 1, "total": 3, "message": "one"},
            {"progress": 2.5, "total": 10**400, "message": 7},
            {"progress": 10**400},
            {"progress": "much"},
        ]
        said = ({"method": "notifications/progress", "params": {"progressToken": token, **part}} for part in news)
        channel.say(*said, {"id": request["id"], "result": {}})
        assert await call == {}
        assert heard == [(1, 3, "one"), (2.5, None, None)]
        channel.say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 3}})
        channel.say({"method": "notifications/progress", "params": None})
        channel.end()
        await dispatcher.ended.wait()
    assert len(heard) == 2, "progress of a call that is over"


async def test_a_listener_that_fails_or_sleeps_costs_the_call_nothing_but_a_moment() -> None:
    """Progress is a courtesy; the answer is what was asked for."""

    async def failing(progress: float, total: float | None, message: str | None) -> None:
        raise RuntimeError("no terminal")

    async def sleeping(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.Event().wait()

    for on_progress in (failing, sleeping):
        async with listening() as (channel, _, dispatcher):
            call = asyncio.create_task(
                dispatcher.send_raw_request("tools/call", {}, {"on_progress": on_progress, "timeout": 0.5})
            )
            request = await channel.request("tools/call")
            params = {"progressToken": request["id"], "progress": 1}
            channel.say(
                {"method": "notifications/progress", "params": params}, {"id": request["id"], "result": {"n": 1}}
            )
            with anyio.fail_after(3):
                assert await call == {"n": 1}


# Requests


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("roots/list", {"result": {"method": "roots/list"}}),
        ("refuse", {"error": {"code": -32001, "message": "not today", "data": {"until": "tomorrow"}}}),
        ("fault", {"error": {"code": -32603, "message": "the client could not answer"}}),
        ("malformed", {"error": {"code": -32602, "message": "Invalid request parameters"}}),
    ],
)
async def test_a_servers_request_is_answered_and_our_faults_are_not_shown_to_it(
    method: str, answer: dict[str, Any]
) -> None:
    """A server waits for us as we wait for it, and our insides are no business of its."""
    async with listening() as (channel, _, _):
        channel.say({"id": "q-1", "method": method, "params": {}})
        assert await channel.heard(1) == [{"jsonrpc": "2.0", "id": "q-1", **answer}]


@pytest.mark.requirement("B-14")
async def test_a_server_that_asks_too_much_at_once_is_refused_and_the_rest_is_answered() -> None:
    """A thousand questions at once are an attack on whoever answers."""
    async with listening() as (channel, listener, dispatcher):
        channel.say(*({"id": number, "method": "wait"} for number in range(40)), {"id": 3, "method": "roots/list"})
        refused = await channel.heard(9)
        assert {message["error"]["message"] for message in refused} == {"too many requests at once"}
        assert dispatcher.counters["refused_requests"] == 9
        listener.patience.set()
        answers = await channel.heard(41)
    assert sum("result" in message for message in answers) == 32


@pytest.mark.requirement("B-14")
async def test_a_server_that_takes_no_answers_is_refused_what_it_asks_beyond_a_few() -> None:
    """Each question that is answered costs memory until the answer is taken, and it can ask for ever."""
    async with listening() as (channel, listener, dispatcher):

        def heard(number: int) -> bool:
            return dispatcher.counters["refused_requests"] + len(listener.asked) > number

        channel.full = True
        for number in range(40):
            channel.say({"id": number, "method": "roots/list"})
            await until(partial(heard, number), what="the question to be answered or refused")
        await until(lambda: dispatcher.counters["refused_requests"] == 8, what="eight refusals")


async def test_a_server_can_take_its_request_back() -> None:
    """Whoever was asked must not go on for nobody, and no answer is sent."""
    async with listening() as (channel, listener, _):
        channel.say({"id": 1, "method": "wait"}, {"id": 2, "method": "roots/list"})
        await channel.heard(1)
        channel.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        channel.say({"method": "notifications/cancelled", "params": {"requestId": [1]}})
        channel.say({"method": "notifications/cancelled"})
        await until(lambda: listener.cancelled, what="the cancellation")
        channel.say({"id": 3, "method": "roots/list"})
        answers = await channel.heard(2)
    assert [message["id"] for message in answers] == [2, 3]


async def test_a_request_with_an_id_that_is_none_is_counted_and_not_answered() -> None:
    """There is nobody to answer."""
    async with listening() as (channel, _, dispatcher):
        odd: list[Any] = [None, True, 1.5, [1], {}]
        channel.say(*({"id": identity, "method": "roots/list"} for identity in odd))
        channel.say({"id": 9, "method": "roots/list"})
        assert [message["id"] for message in await channel.heard(1)] == [9]
        assert dispatcher.counters["unreadable"] == 5


async def test_a_callback_can_notify_the_server_and_ask_it_nothing() -> None:
    """The SDK's context has both; asking back from within an answer could wait for itself."""
    async with listening() as (channel, listener, _):
        channel.say({"id": 1, "method": "roots/list"})
        await channel.heard(1)
        context = listener.context
        assert isinstance(context, InboundContext)
        assert context.request_id == 1
        assert not context.can_send_request
        with pytest.raises(MCPError, match="no ping from within an answer"):
            await context.send_raw_request("ping", None)
        await context.progress(1)
        await context.notify("notifications/x", None)
        assert (await channel.heard(2))[1] == {"jsonrpc": "2.0", "method": "notifications/x", "params": {}}


@pytest.mark.requirement("B-14")
async def test_questions_that_wait_for_a_person_are_bounded_in_bytes_too() -> None:
    """Thirty-two of ten megabytes would be all the memory there is."""
    async with listening(bounds=Bounds(bytes=10_000)) as (channel, listener, dispatcher):
        channel.say(*({"id": n, "method": "wait", "params": {"x": "x" * 4_000}} for n in range(5)))
        await until(lambda: dispatcher.counters["refused_requests"] == 3, what="the others to be refused")
        listener.patience.set()
        await until(lambda: len(channel.sent) == 5, what="all to be answered")
        channel.say({"id": 9, "method": "wait", "params": {"x": "x" * 9_000}})
        await until(lambda: len(channel.sent) == 6, what="a large one that comes alone")
    assert sorted(listener.asked) == [0, 1, 9]


async def test_a_method_of_a_megabyte_is_refused_unread() -> None:
    """Its name would be looked at, and sent back, by everybody on the way."""
    async with listening() as (channel, listener, _):
        channel.say({"id": 1, "method": "m" * 1_000_000})
        await until(lambda: len(channel.sent) == 1, what="the refusal")
    assert listener.asked == []
    assert len(str(channel.sent[0])) < 1_000
