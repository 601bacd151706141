"""Agents with models over real HTTP, spoken to as OpenAI's and as Anthropic's, by a server of somebody else's making."""

import json
import time
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from squidbot.adapters.models.patience import PatientModel
from squidbot.core.domain.agent_events import AgentEvent, AgentRun, Bounds, Noted, TextSaid, TurnVoid
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.content import TextContent
from squidbot.core.domain.errors import ModelError
from squidbot.core.domain.tools import ToolResult
from squidbot.core.ports import LanguageModel
from squidbot.core.services.agent_loop import AgentLoop
from squidbot.core.services.agent_tools import Rules, Toolbox
from tests.fakes.door import FakeTool, World
from tests.fakes.models import FakeShelf
from tests.fixtures.aimock import Mock, Provider, aimock, calls, turn

pytestmark = [pytest.mark.anyio, pytest.mark.peers, pytest.mark.requirement("G-02")]
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])
DEVELOPER = Caller("backend_developer", member="local:ann", origin="agent")


class Ticketing:
    """Tools in memory, behind a true door."""

    def __init__(self) -> None:
        self.push = FakeTool("git", "git_push", self._push, parameters={"required": ["branch"]})
        self.log = FakeTool("git", "git_log", lambda _: ToolResult((TextContent("two commits"),)))
        self.diff = FakeTool("git", "git_diff", lambda _: ToolResult((TextContent("one line"),)))
        self.merge = FakeTool("github", "merge_pull_request")
        self.world = World([self.push, self.log, self.diff, self.merge])
        self.events: list[AgentEvent] = []

    def _push(self, arguments: Mapping[str, Any]) -> ToolResult:
        wrong = arguments["branch"] == "mian"
        return ToolResult((TextContent("no branch 'mian'" if wrong else "pushed"),), is_error=wrong)

    async def run(self, model: LanguageModel, *, bounds: Bounds | None = None, rules: Rules | None = None) -> AgentRun:
        toolbox = Toolbox(self.world.door, DEVELOPER, rules=rules or Rules(), shelf=FakeShelf())
        try:
            loop = AgentLoop(model, toolbox, bounds=bounds or Bounds(), system="Be brief.")
            return await loop.run("Push my work.", emit=self.events.append)
        finally:
            await model.aclose()


def patient(mock: Mock, provider: Provider) -> PatientModel:
    return PatientModel([mock.model(provider)], first_wait=0.01)


@PROVIDERS
async def test_three_calls_two_of_them_at_once_and_an_error_that_the_model_corrects(provider: Provider) -> None:
    """The whole way: words stream, calls are made, failures come back and are mended."""
    fixtures = [
        turn(0, calls(("mcp_git_git_log", {}), ("mcp_git_git_diff", {"path": "a"}), text="I look first.")),
        turn(1, calls(("mcp_git_git_push", {"branch": "mian"}))),
        turn(2, calls(("mcp_git_git_push", {"branch": "main"}))),
        turn(3, {"content": "It is pushed, after a slip of mine."}),
    ]
    world = Ticketing()
    with aimock(fixtures) as mock:
        run = await world.run(patient(mock, provider))
        journal = mock.journal()
    assert (run.answer, run.stop_reason) == ("It is pushed, after a slip of mine.", "answered")
    assert [[(call.name, call.outcome) for call in step.calls] for step in run.steps] == [
        [("mcp_git_git_log", "ok"), ("mcp_git_git_diff", "ok")],
        [("mcp_git_git_push", "tool_error")],
        [("mcp_git_git_push", "ok")],
        [],
    ]
    assert world.push.calls == [{"branch": "mian"}, {"branch": "main"}]
    said = [event.text for event in world.events if isinstance(event, TextSaid) and event.step == 4]
    assert len(said) > 2
    assert "".join(said) == run.answer
    assert run.usage.total > 0
    assert {record.id for record in world.world.log.closed} == set(run.records)
    assert len(journal) == 4
    assert "no branch 'mian'" in json.dumps(journal[2]["body"])


@PROVIDERS
async def test_too_many_requests_are_asked_again_when_the_provider_said(provider: Provider) -> None:
    """Honouring Retry-After is what keeps an account from being locked."""
    limited = {"error": {"message": "Slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 1}
    fixtures: list[dict[str, Any]] = [
        {"match": {"sequenceIndex": 0}, "response": limited},
        {"match": {}, "response": {"content": "Here I am."}},
    ]
    world = Ticketing()
    began = time.monotonic()
    with aimock(fixtures) as mock:
        run = await world.run(patient(mock, provider))
    assert run.answer == "Here I am."
    assert time.monotonic() - began >= 1
    assert next(event.text for event in world.events if isinstance(event, Noted)).endswith("asking again in 1.0 s")


@PROVIDERS
async def test_a_stream_that_breaks_off_is_begun_anew(provider: Provider) -> None:
    """Half an answer is worse than none, and a second try costs little."""
    words = {"content": "This is a long answer that is worth reading to its very end."}
    fixtures: list[dict[str, Any]] = [
        {"match": {"sequenceIndex": 0}, "response": words, "truncateAfterChunks": 4, "latency": 50},
        {"match": {}, "response": words},
    ]
    world = Ticketing()
    with aimock(fixtures) as mock:
        run = await world.run(patient(mock, provider))
    assert run.answer == words["content"]
    assert any(isinstance(event, TurnVoid) for event in world.events)


# As Anthropic, aimock writes valid JSON only; test_wire has a server that does not.
@pytest.mark.parametrize(
    ("provider", "name", "arguments", "words"),
    [
        ("openai", "mcp_git_git_push", '{"branch": "ma', "not valid JSON"),
        *(
            (provider, name, "{}", words)
            for provider in ("openai", "anthropic")
            for name, words in (
                ("mcp_git_git_psuh", "Did you mean"),
                ("mcp_github_merge_pull_request", "may not use"),
                ("mcp_git_git_push", "branch: is needed"),
            )
        ),
    ],
)
async def test_a_call_that_cannot_be_made_is_explained_to_the_model(
    provider: Provider, name: str, arguments: str, words: str
) -> None:
    """Whatever a model writes, the next request is one that its provider takes, with the reason in it."""
    fixtures = [turn(0, calls((name, arguments))), turn(1, {"content": "I see."})]
    world = Ticketing()
    with aimock(fixtures) as mock:
        run = await world.run(patient(mock, provider))
        last = mock.journal()[-1]
    assert (run.answer, run.steps[0].calls[0].outcome) == ("I see.", "refused")
    assert words in json.dumps(last["body"])
    assert [record.outcome for record in world.world.log.closed] == ["refused"]
    assert (world.merge.calls, world.push.calls) == ([], [])


@PROVIDERS
@pytest.mark.parametrize(
    ("bounds", "reason"),
    [(Bounds(steps=2), "steps"), (Bounds(tokens=1), "tokens"), (Bounds(repeats=1), "repeats")],
)
async def test_a_model_in_a_circle_is_ended_at_each_bound(provider: Provider, bounds: Bounds, reason: str) -> None:
    """A bound that holds only with a friendly model is none."""
    fixtures = [{"match": {}, "response": calls(("mcp_git_git_log", {}))}]
    world = Ticketing()
    with aimock(fixtures) as mock:
        run = await world.run(patient(mock, provider), bounds=bounds)
    assert run.stop_reason == reason
    assert {record.id for record in world.world.log.closed} == set(run.records)


@PROVIDERS
async def test_a_slow_model_is_ended_by_the_clock(provider: Provider) -> None:
    """A stream that drips keeps nobody waiting for ever."""
    slow = {"match": {}, "response": {"content": "slow " * 200}, "latency": 200}
    world = Ticketing()
    with aimock([slow]) as mock, anyio.fail_after(20):
        run = await world.run(patient(mock, provider), bounds=Bounds(seconds=0.8))
    assert run.stop_reason == "time"


@PROVIDERS
@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "Incorrect API key provided", "auth"),
        (404, "The model `scripted-1` does not exist", "unknown_model"),
        (400, "scripted-1 does not support tools", "no_tools"),
        (400, "prompt is too long", "refused"),
        (429, "You exceeded your current quota", "refused"),
        (503, "overloaded", "busy"),
    ],
)
async def test_what_a_provider_refuses_is_told_with_its_cause(
    provider: Provider, status: int, message: str, kind: str
) -> None:
    """A person reads this, and must know what to do."""
    response = {"error": {"message": message, "type": "x"}, "status": status}
    world = Ticketing()
    with aimock([{"match": {}, "response": response}]) as mock:
        run = await world.run(patient(mock, provider))
        asked = len(mock.journal())
    assert isinstance(run.error, ModelError)
    assert (run.stop_reason, run.error.kind) == ("error", kind)
    assert message in str(run.error)
    assert asked == (4 if kind == "busy" else 1)
    assert world.world.log.closed == []


@PROVIDERS
async def test_an_unreachable_model_is_named_with_its_place(provider: Provider) -> None:
    """Nobody should have to guess which server was meant."""
    world = Ticketing()
    run = await world.run(PatientModel([Mock("http://127.0.0.1:9").model(provider)], first_wait=0.01))
    assert isinstance(run.error, ModelError)
    assert run.error.kind == "unreachable"
    assert "http://127.0.0.1:9" in str(run.error)
    assert "ollama serve" in (run.error.hint or "")


@PROVIDERS
async def test_the_next_model_of_the_list_takes_over(provider: Provider) -> None:
    """Somebody else's outage is no reason to stop working."""
    world = Ticketing()
    with aimock([{"match": {}, "response": {"content": "I take over."}}]) as mock:
        model = PatientModel([Mock("http://127.0.0.1:9").model(provider), mock.model(provider)], first_wait=0.01)
        run = await world.run(model)
    assert run.answer == "I take over."
    assert any(isinstance(event, Noted) and "takes over" in event.text for event in world.events)


@PROVIDERS
@pytest.mark.requirement("C-09")
@pytest.mark.parametrize(
    "message", ["Invalid schema for function 'mcp_git_git_diff': x", "tools.1.custom.input_schema: x"]
)
async def test_a_tool_that_the_provider_refuses_is_left_out_alone(provider: Provider, message: str) -> None:
    """One bad schema of one server must not silence an agent."""
    fixtures = [
        {
            "match": {"toolName": "mcp_git_git_diff"},
            "response": {"error": {"message": message, "type": "invalid_request_error"}, "status": 400},
        },
        turn(0, calls(("mcp_git_git_log", {}))),
        turn(1, {"content": "Done."}),
    ]
    world = Ticketing()
    # The tools come in the order push, log, diff: the index names the one that is second in this list.
    world.world = World([world.log, world.diff, world.push, world.merge])
    with aimock(fixtures) as mock:
        run = await world.run(patient(mock, provider))
        asked = len(mock.journal())
    assert (run.answer, asked) == ("Done.", 3)
    notes = [event.text for event in world.events if isinstance(event, Noted)]
    assert len(notes) == 1
    assert "'mcp_git_git_diff' is left out" in notes[0]
