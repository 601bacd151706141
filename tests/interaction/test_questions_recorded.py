"""The whole way of a server's question: from a real server through the guarded door to whoever called, and on disk."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from squidbot import AgentMCPService
from squidbot.container import Container
from squidbot.core.domain.audit import RecordFilter, ToolExecution
from squidbot.core.domain.callers import Caller
from tests.fakes.counterpart import FakeCounterpart
from tests.fixtures.running import ROOT, until, world_command

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E-05", "G-05")]

ANN, BEN = Caller("dev", member="ann", origin="mcp"), Caller("dev", member="ben", origin="mcp")


@asynccontextmanager
async def guarded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[AgentMCPService, Container]]:
    """A guarded door over a real server on a pipe, as the gateway has it."""
    monkeypatch.setenv("SQUIDBOT_HOME", str(folder / "state"))
    entry = {"command": sys.executable, "args": world_command("stdio")[1:], "cwd": str(ROOT), "protocol": "legacy"}
    document = {"tools": {"mcp_servers": {"world": entry}}, "roles": {"dev": {"tools": {"world": ["*"]}}}}
    file = folder / "squidbot.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    container = Container(settings_file=file, converses=True)
    async with container.service() as door:
        assert await container.client().connect("world")
        yield door, container


async def questions(container: Container) -> list[ToolExecution]:
    return [record async for record in container.store().records(RecordFilter(kind="question"))]


async def test_a_question_to_the_only_caller_is_answered_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was asked what, by which server, is in the trail."""
    async with guarded(tmp_path, monkeypatch) as (door, container):
        answer = await door.execute_tool(ANN, "world", "ask", counterpart=FakeCounterpart("session-1"))
        (record,) = await questions(container)
    assert answer.text == "accept: {'colour': 'session-1'}"
    assert (record.role, record.squad_member_id, record.server, record.tool) == ("dev", "ann", "world", "elicitation")
    assert record.outcome == "ok"
    assert "Which colour?" in record.arguments


async def test_while_two_call_a_question_is_declined_with_the_reason_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of them sees what may be the other's, and an auditor sees that it happened."""
    ann, ben = FakeCounterpart("session-1"), FakeCounterpart("session-2")
    async with guarded(tmp_path, monkeypatch) as (door, container):

        async def started() -> bool:
            return "ann" in (await door.execute_tool(ANN, "world", "witness")).text

        async with anyio.create_task_group() as tasks:
            slow = {"seconds": 30, "token": "ann"}
            tasks.start_soon(lambda: door.execute_tool(ANN, "world", "slow", slow, counterpart=ann))
            await until(started, what="the other call")
            answer = await door.execute_tool(BEN, "world", "ask", counterpart=ben)
            tasks.cancel_scope.cancel()
        (record,) = await questions(container)
        assert container.client().status("world").counters["declined"] == 1
    assert answer.text == "decline: None"
    assert (ann.asked, ben.asked) == ([], [])
    assert (record.outcome, record.role, record.origin, record.tool) == ("refused", "", "system", "elicitation")
    assert "not certain whose call" in (record.error_message or "")
