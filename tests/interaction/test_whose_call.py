"""A server's questions and log messages: they reach the one whose call they belong to, or nobody."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from squidbot import MCPClient
from squidbot.core.domain.servers import ServerLog
from squidbot.core.ports import Question
from tests.fakes.counterpart import FakeCounterpart
from tests.fixtures.meeting import Place, at
from tests.fixtures.running import until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-05")]

Unclaimed = tuple[Question, str, str]

# One connection on which a message does not say whose it is, and one on which its stream does.
shared_pipe = pytest.mark.parametrize(
    "place", [(transport, "legacy") for transport in ("stdio", "sse", "websocket", "memory")], indirect=True
)
own_streams = pytest.mark.parametrize("place", [("http", "legacy")], indirect=True)
stateless = pytest.mark.parametrize(
    "place", [(transport, "modern") for transport in ("stdio", "websocket", "http", "memory")], indirect=True
)


def told(client: MCPClient) -> list[Unclaimed]:
    """The questions that nobody was asked, as they come."""
    found: list[Unclaimed] = []

    async def hear(question: Question, server: str, params: Mapping[str, Any], reason: str) -> None:
        assert params
        found.append((question, server, reason))

    client.on_unclaimed = hear
    return found


@asynccontextmanager
async def busy(client: MCPClient, token: str, counterpart: FakeCounterpart | None) -> AsyncIterator[None]:
    """A call of somebody else is under way meanwhile."""

    async def started() -> bool:
        return token in (await client.call_tool("world", "witness")).structured["started"]

    async with anyio.create_task_group() as tasks:
        arguments = {"seconds": 30, "token": token}
        tasks.start_soon(lambda: client.call_tool("world", "slow", arguments, counterpart=counterpart))
        await until(started, what="the other call")
        yield
        tasks.cancel_scope.cancel()


async def test_what_a_server_asks_and_logs_during_a_call_reaches_the_caller(place: Place) -> None:
    """With one caller there is no doubt, over any transport and in both eras."""
    heard: list[ServerLog] = []
    ann = FakeCounterpart("ann")
    async with at(place, converses=True, on_log=heard.append) as client:
        assert (await client.call_tool("world", "ask", counterpart=ann)).text == "accept: {'colour': 'ann'}"
        assert (await client.call_tool("world", "think", counterpart=ann)).text == "the model says ann"
        await client.call_tool("world", "log", counterpart=ann)
        assert [entry.data for entry in ann.logged] == [entry.data for entry in heard]
        assert [(question, server) for question, server, _ in ann.asked] == [
            ("elicitation", "world"),
            ("sampling", "world"),
        ]
        assert client.status("world").counters["declined"] == 0
    assert heard[-1].level == "emergency"  # at which level it begins is set by whoever connected before
    assert "_meta" not in ann.asked[0][2]


@shared_pipe
async def test_a_question_that_may_be_anybodys_is_nobodys(place: Place) -> None:
    """A person must never be shown, nor answer, what another one's call wants to know."""
    ann, ben = FakeCounterpart("ann"), FakeCounterpart("ben")
    async with at(place, converses=True) as client:
        unclaimed = told(client)
        async with busy(client, f"ann-{place.transport}", ann):
            assert (await client.call_tool("world", "ask", counterpart=ben)).text == "decline: None"
            thought = await client.call_tool("world", "think", counterpart=ben)
            assert "calls of 2 callers are under way" in thought.text
            await client.call_tool("world", "log", counterpart=ben)
        assert client.status("world").counters["declined"] == 2
    assert (ann.asked, ben.asked, ann.logged, ben.logged) == ([], [], [], [])
    assert [(question, server) for question, server, _ in unclaimed] == [
        ("elicitation", "world"),
        ("sampling", "world"),
    ]
    assert all("not certain whose call" in reason for _, _, reason in unclaimed)


@shared_pipe
async def test_all_calls_of_one_owner_may_be_asked(place: Place) -> None:
    """Two calls of one client session are one person's: there is nobody to mistake."""
    async with at(place, converses=True) as client:
        once_more = FakeCounterpart("ann")
        async with busy(client, f"same-{place.transport}", FakeCounterpart("ann")):
            asked = await client.call_tool("world", "ask", counterpart=once_more)
        assert asked.text == "accept: {'colour': 'ann'}"
        assert len(once_more.asked) == 1


@shared_pipe
async def test_a_call_without_anybody_at_its_end_makes_the_question_uncertain(place: Place) -> None:
    """It may be that call's question, and then it is not for the only one who could answer."""
    async with at(place, converses=True) as client:
        async with busy(client, f"none-{place.transport}", None):
            asked = await client.call_tool("world", "ask", counterpart=FakeCounterpart("ann"))
        assert asked.text == "decline: None"


@shared_pipe
async def test_a_call_that_was_given_up_may_still_ask(place: Place) -> None:
    """A server may be busy with what nobody waits for: its question must not reach the next caller."""
    ann, ben = FakeCounterpart("ann"), FakeCounterpart("ben")
    async with at(place, converses=True) as client:
        arguments = {"seconds": 30, "token": "given up"}
        given_up = await client.call_tool("world", "slow", arguments, timeout=0.3, counterpart=ann)
        assert given_up.failure is not None
        assert given_up.failure.kind == "timeout"
        assert (await client.call_tool("world", "ask", counterpart=ben)).text == "decline: None"
        assert (await client.call_tool("world", "ask", counterpart=ann)).text == "accept: {'colour': 'ann'}"


@own_streams
async def test_on_its_own_stream_a_question_has_an_owner_whoever_else_calls(place: Place) -> None:
    """Over streamable HTTP each call has its own answer's stream: what comes there is that call's."""
    ann, ben = FakeCounterpart("ann"), FakeCounterpart("ben")
    async with at(place, converses=True) as client, busy(client, "ann-http", ann):
        assert (await client.call_tool("world", "ask", counterpart=ben)).text == "accept: {'colour': 'ben'}"
        assert (await client.call_tool("world", "think", counterpart=ben)).text == "the model says ben"
        await client.call_tool("world", "log", counterpart=ben)
    assert (ann.asked, ann.logged) == ([], [])
    assert ben.logged[-1].level == "emergency"


@stateless
async def test_in_the_stateless_era_each_caller_is_asked_for_their_own_call(place: Place) -> None:
    """There a question is the answer of one call, so many callers can be asked at the same time."""
    gate = anyio.Event()
    callers = [FakeCounterpart(name, gate=gate) for name in ("ann", "ben", "cleo")]
    answers: dict[str, str] = {}

    async def call(caller: FakeCounterpart) -> None:
        answers[caller.owner] = (await client.call_tool("world", "ask", counterpart=caller)).text

    async with at(place, converses=True) as client, anyio.create_task_group() as tasks:
        for caller in callers:
            tasks.start_soon(call, caller)
        await until(lambda: all(caller.asked for caller in callers), what="a question to each")
        gate.set()
    assert answers == {name: f"accept: {{'colour': '{name}'}}" for name in ("ann", "ben", "cleo")}


async def test_a_counterpart_that_does_not_answer_declines(place: Place) -> None:
    """A client that cannot ask its person is no reason for a server to wait."""
    silent = FakeCounterpart("ann", answers=False)
    async with at(place, converses=True) as client:
        assert (await client.call_tool("world", "ask", counterpart=silent)).text == "decline: None"
        thought = await client.call_tool("world", "think", counterpart=silent)
        assert thought.is_error
        assert "did not answer" in thought.text


async def test_where_nobody_is_at_the_end_of_a_call_the_program_itself_answers(place: Place) -> None:
    """A library's own callbacks are asked as ever, and never for a call that has somebody at its end."""

    async def program(server: str, form: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"action": "accept", "content": {"colour": "the program's"}}

    async with at(place, elicitation=program) as client:
        assert (await client.call_tool("world", "ask")).text == "accept: {'colour': \"the program's\"}"
        asked = await client.call_tool("world", "ask", counterpart=FakeCounterpart("ann"))
        assert asked.text == "accept: {'colour': 'ann'}"


@pytest.mark.parametrize("place", [(transport, "legacy") for transport in ("stdio", "http", "memory")], indirect=True)
async def test_the_time_that_a_person_takes_is_not_the_servers(place: Place) -> None:
    """Somebody who reads a question before they answer must not lose the call by that."""
    gate = anyio.Event()
    ann = FakeCounterpart("ann", gate=gate)
    async with at(place, converses=True) as client, anyio.create_task_group() as tasks:
        answers: list[str] = []

        async def call() -> None:
            answers.append((await client.call_tool("world", "ask", timeout=1.0, counterpart=ann)).text)

        tasks.start_soon(call)
        await until(lambda: ann.asked, what="the question")
        asked = anyio.current_time()
        await until(lambda: anyio.current_time() > asked + 1.5, what="the deadline to pass")
        gate.set()
        await until(lambda: answers, what="the answer")
        slow = {"seconds": 30, "token": f"late-{place.transport}"}
        late = await client.call_tool("world", "slow", slow, timeout=0.3, counterpart=ann)
        assert late.failure is not None
        assert late.failure.kind == "timeout"
    assert answers == ["accept: {'colour': 'ann'}"]


async def test_a_question_ends_with_the_call_that_it_was_for(place: Place) -> None:
    """Nobody should think about an answer that no server waits for, nor find the question there an hour later."""
    ended: list[str] = []

    class Thoughtful(FakeCounterpart):
        async def ask(self, question: Question, server: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
            try:
                return await super().ask(question, server, params)
            except anyio.get_cancelled_exc_class():
                ended.append(question)
                raise

    ann = Thoughtful("ann", gate=anyio.Event())
    async with at(place, converses=True) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.call_tool("world", "ask", counterpart=ann))
            await until(lambda: ann.asked, what="the question")
            tasks.cancel_scope.cancel()
        await until(lambda: ended == ["elicitation"], what="the question to end")
        assert (await client.call_tool("world", "echo", {"text": "still here"})).text == "still here"
