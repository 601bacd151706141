"""For whom a server's own messages are, decided when they arrive."""

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from squidbot.adapters.mcp.attribution import NOBODY, UnderWay, concerned
from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.dispatcher import FrameDispatcher
from squidbot.adapters.mcp.shelf import Shelf
from squidbot.core.ports import Counterpart
from tests.fakes.channel import ScriptedChannel
from tests.fakes.counterpart import FakeCounterpart
from tests.fixtures.running import until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-05")]

ANN, BEN = FakeCounterpart("ann"), FakeCounterpart("ben")
ASK = {"method": "elicitation/create", "params": {"message": "?"}}


async def test_an_answer_that_comes_right_behind_a_question_does_not_make_it_another_ones() -> None:
    """Both come in one piece: when the question is handled its call is over, and only somebody else's is left."""
    channel, under_way = ScriptedChannel(), UnderWay()
    wire = FrameDispatcher(channel, server="s", bounds=Bounds(), under_way=under_way)
    seen: list[tuple[Counterpart | None, str | None]] = []

    async def handled(context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        await anyio.lowlevel.checkpoint()
        seen.append((concerned().counterpart, concerned().reason))
        return {}

    async def call(who: FakeCounterpart, request_id: int) -> None:
        async with under_way.call(who) as mine:
            mine.asks(request_id)
            await wire.send_raw_request("tools/call", {}, {"request_id": request_id, "timeout": 5})
            mine.answered(request_id)

    async with anyio.create_task_group() as tasks:
        await tasks.start(wire.run, handled, handled)
        tasks.start_soon(call, ANN, 1)
        tasks.start_soon(call, BEN, 2)
        await channel.heard(2)
        channel.say({"id": 9, **ASK}, {"id": 1, "result": {}})
        await until(lambda: seen, what="the question")
        channel.say({"id": 2, "result": {}}, {"id": 10, **ASK})
        await until(lambda: len(seen) == 2, what="the next question")
        tasks.cancel_scope.cancel()
    (first, why), second = seen
    assert first is None
    assert "calls of 2 callers" in (why or "")
    assert second == (BEN, None)  # it came before Ben's call could know that it was over: no other was under way


async def test_a_question_ends_with_the_last_call_that_it_may_be_for() -> None:
    """A server may forget to take its question back when the call is over."""
    under_way = UnderWay()
    over: list[str] = []
    asked = anyio.Event()

    async def ask() -> None:
        with under_way.asking(ANN):
            asked.set()
            await anyio.sleep_forever()
        over.append("the question")

    async with anyio.create_task_group() as tasks, under_way.call(FakeCounterpart("ann")):
        async with under_way.call(ANN):
            tasks.start_soon(ask)
            await asked.wait()
        await anyio.wait_all_tasks_blocked()
        assert over == []
    assert over == ["the question"]


async def test_a_question_that_comes_too_late_for_its_call_is_not_asked() -> None:
    """There is nobody left who would wait for the answer."""
    answered: list[str] = []
    with UnderWay().asking(ANN):
        await anyio.lowlevel.checkpoint()
        answered.append("asked")
    assert answered == []


@pytest.mark.parametrize(("owners", "told"), [("a", True), ("aa", True), ("ab", False), ("a-", False), ("", None)])
async def test_all_calls_must_be_one_owners(owners: str, told: bool | None) -> None:
    """One exception is enough to be uncertain; without anybody the program itself may answer."""
    under_way = UnderWay()

    async def call(owner: str) -> None:
        async with under_way.call(None if owner == "-" else FakeCounterpart(owner)):
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        for owner in owners:
            tasks.start_soon(call, owner)
        await anyio.wait_all_tasks_blocked()
        addressee = under_way.whose()
        tasks.cancel_scope.cancel()
    assert (addressee.counterpart is not None) is bool(told)
    assert (addressee.reason is not None) is (told is False)
    assert (addressee == NOBODY) is (told is None)


async def test_a_call_that_was_given_up_is_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """One impatient caller must not make a server's questions uncertain for ever."""
    under_way = UnderWay()
    with anyio.move_on_after(0):
        async with under_way.call(ANN):
            await anyio.sleep_forever()
    loop = asyncio.get_running_loop()
    now = loop.time()
    async with under_way.call(BEN):
        assert under_way.whose().reason is not None
        monkeypatch.setattr(loop, "time", lambda: now + 60)
        assert under_way.whose().counterpart is BEN
        monkeypatch.undo()


async def test_a_server_cannot_say_itself_whose_stream_its_message_came_on() -> None:
    """The mark is ours: one that comes from outside is overwritten, or names nobody."""
    under_way, shelf = UnderWay(), Shelf()
    shelf.whose = under_way.whose
    async with under_way.call(ANN) as call, under_way.call(BEN) as other:
        call.asks(1)
        other.asks(2)
        marked = shelf.put(1, {"id": 7, **ASK})
        mark = marked["params"]["_meta"]
        forged = shelf.put(2, {"id": 8, "method": ASK["method"], "params": {"_meta": mark}})
        assert forged["params"]["_meta"] != mark
        bare, addressee = shelf.unmarked(forged["params"])
        assert (bare, addressee and addressee.counterpart) == ({}, BEN)
        bare, addressee = shelf.unmarked(marked["params"])
        assert (bare, addressee and addressee.counterpart) == ({"message": "?"}, ANN)
        assert shelf.unmarked(marked["params"])[1] is None  # each mark is good once
