"""What servers ask of callers is written down, and nothing secret passes."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.content import TextContent
from squidbot.core.domain.servers import ServerLog
from squidbot.core.domain.tools import ToolResult
from squidbot.core.ports import Counterpart, OnProgress, Question
from tests.fakes.counterpart import FakeCounterpart
from tests.fakes.door import FakeTool, World

pytestmark = pytest.mark.anyio

LEAD = Caller("tech_lead", member="m1", origin="mcp")


class AskingTool(FakeTool):
    """A tool whose server asks something while it runs, and reports progress."""

    def __init__(self, question: Question, params: Mapping[str, Any]) -> None:
        super().__init__("git", "git_log")
        self._question = question
        self._params = params

    async def execute(
        self,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        counterpart: Counterpart | None = None,
    ) -> ToolResult:
        assert counterpart is not None
        await counterpart.log(ServerLog("git", "info", {"said": ["hunter22 again"]}))
        answer = await counterpart.ask(self._question, "git", self._params)
        if on_progress is not None:
            for step in range(1, 101):
                await on_progress(step, 100, "with hunter22")
        return ToolResult((TextContent(json.dumps(answer)),))


@pytest.mark.requirement("E-05", "G-05")
async def test_a_question_and_its_answer_leave_a_record_of_whoever_was_asked() -> None:
    """The trail has to show what a server wanted of whom; a person's own words stay with the server."""
    world = World([AskingTool("elicitation", {"message": "Your colour?"})])
    ann = FakeCounterpart("ann")
    await world.door.execute_tool(LEAD, "git", "git_log", counterpart=ann)
    question, call = world.log.closed
    assert (question.kind, question.server, question.tool, question.outcome) == (
        "question",
        "git",
        "elicitation",
        "ok",
    )
    assert (question.role, question.squad_member_id, question.origin) == ("tech_lead", "m1", "mcp")
    assert json.loads(question.arguments) == {"message": "Your colour?"}
    assert json.loads(question.result or "") == {"action": "accept", "answered": ["colour"]}
    assert (call.kind, call.outcome) == ("call", "ok")


@pytest.mark.requirement("E-05", "G-05")
async def test_a_question_that_is_not_answered_is_recorded_as_refused() -> None:
    """Whoever wonders why a tool failed finds the reason."""
    world = World([AskingTool("sampling", {"messages": []})])
    result = await world.door.execute_tool(LEAD, "git", "git_log", counterpart=FakeCounterpart("ann", answers=False))
    assert result.text == "null"
    question = world.log.closed[0]
    assert (question.tool, question.outcome) == ("sampling", "refused")
    assert "cannot or will not answer" in (question.error_message or "")


@pytest.mark.requirement("E-05", "G-05")
async def test_a_question_that_nobody_was_asked_is_recorded_with_the_reason() -> None:
    """It belongs to no role, and must not be lost for that."""
    world = World([FakeTool("git", "git_log")], secrets=["hunter22"])
    await world.door.questions.unclaimed("elicitation", "git", {"message": "hunter22?"}, "two callers")
    (record,) = world.log.closed
    assert (record.kind, record.role, record.origin, record.outcome) == ("question", "", "system", "refused")
    assert record.error_message == "declined: two callers"
    assert "hunter22" not in record.arguments


async def test_no_secret_of_the_settings_reaches_a_client_by_a_question_or_a_log_message() -> None:
    """No server has to tell anybody what it was given to work with."""
    world = World([AskingTool("elicitation", {"message": "Is it hunter22?"})], secrets=["hunter22"])
    ann = FakeCounterpart("ann")
    await world.door.execute_tool(LEAD, "git", "git_log", counterpart=ann)
    assert "hunter22" not in str(ann.asked)
    assert "hunter22" not in str(ann.logged)


async def test_an_answer_that_cannot_be_recorded_is_not_given() -> None:
    """No record, no answer: what is not on disk must not have happened."""
    world = World([FakeTool("git", "git_log")])
    asked = world.door.questions.recorded(FakeCounterpart("ann"), LEAD)
    assert asked is not None
    world.log.broken = True
    assert await asked.ask("elicitation", "git", {"message": "?"}) is None


@pytest.mark.requirement("G-08")
async def test_progress_is_said_aloud_at_a_pace_that_can_be_followed() -> None:
    """A dashboard sees a call move, and a server that reports a thousand steps does not flood it."""
    world = World([AskingTool("sampling", {})], secrets=["hunter22"])
    steps: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    with world.door.hub.listen(["progress"]) as heard:
        result = await world.door.execute_tool(
            LEAD, "git", "git_log", on_progress=on_progress, counterpart=FakeCounterpart("ann")
        )
        first, last = heard.receive_nowait(), heard.receive_nowait()
        assert heard.statistics().current_buffer_used == 0
    assert steps == list(range(1, 101))
    assert (first.data["progress"], last.data["progress"]) == (1, 100)
    assert first.data["record"] == result.record
    assert (first.server, first.data["role"], first.data["tool"]) == ("git", "tech_lead", "git_log")
    assert "hunter22" not in str(first.data)
