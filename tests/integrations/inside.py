"""Agents of other frameworks at the guarded door, in the environment where the frameworks are.

`test_toolkits.py` runs this file there, once for each framework.
"""

import importlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from squidbot import AgentMCPService, Caller, MCPToolMapper
from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.schemas import safe_schema
from tests.integrations.scene import ROLE, WORKSHOP, Call, Play, workplace
from tests.integrations.workshop import SCHEMAS

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-11")]


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[AgentMCPService]:
    async with workplace(tmp_path) as opened:
        yield opened


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[AgentMCPService]:
    """With the git server, which takes a second to start."""
    async with workplace(tmp_path, with_git=True) as opened:
        yield opened


@pytest.fixture
def play() -> Play:
    module: Any = importlib.import_module(f"tests.integrations.with_{os.environ['FRAMEWORK']}")
    found: Play = module.play
    return found


async def outcomes(door: AgentMCPService) -> list[tuple[str, str]]:
    store: Any = door.recorder._log
    return [(record.tool, record.outcome) async for record in store.records(RecordFilter())]


async def test_an_agent_is_offered_exactly_the_tools_of_its_role(office: AgentMCPService, play: Play) -> None:
    """What is not listed is not tried, and what is missing cannot be used."""
    seen = await play(office, [])
    git = {f"mcp_git_{tool}" for tool in MCPToolMapper().get_tools_for_role(ROLE, "git")}
    assert set(seen.offered) == git | {f"mcp_workshop_{tool}" for tool in (*WORKSHOP, "push")}
    assert seen.last == "done"


async def test_schemas_reach_the_agent_as_the_server_gave_them(door: AgentMCPService, play: Play) -> None:
    """A model that is told less than the server says guesses the rest."""
    seen = await play(door, [])
    for tool in (*WORKSHOP, "push"):
        assert seen.offered[f"mcp_workshop_{tool}"] == safe_schema(SCHEMAS[tool])


async def test_two_calls_of_one_turn_are_made_side_by_side(door: AgentMCPService, play: Play) -> None:
    """The tool answers nobody before both have called, so one after the other would end in its timeout."""
    both = [Call("mcp_workshop_meet", {"name": "ada"}), Call("mcp_workshop_meet", {"name": "alan"})]
    seen = await play(door, [both])
    assert [(answer.text, answer.failed) for answer in seen.answers] == [
        ("ada met alan", False),
        ("alan met ada", False),
    ]
    assert await outcomes(door) == [("meet", "ok"), ("meet", "ok")]


async def test_what_the_role_may_not_is_refused_in_words_and_recorded(door: AgentMCPService, play: Play) -> None:
    """The model reads why and goes on; the trail shows that it tried."""
    branches = [[Call("mcp_workshop_push", {"branch": branch})] for branch in ("main", "feature/a")]
    seen = await play(door, branches)
    refused, pushed = seen.answers
    assert refused.failed
    assert "role 'backend_developer' may not use 'push' of server 'workshop'" in refused.text
    assert "'branch' must match 'feature/*'" in refused.text
    assert (pushed.text, pushed.failed, seen.last) == ('push {"branch": "feature/a"}', False, "done")
    assert await outcomes(door) == [("push", "refused"), ("push", "ok")]


async def test_arguments_that_do_not_fit_come_back_all_at_once(door: AgentMCPService, play: Play) -> None:
    """A model mends what it is told of; nothing reaches the server meanwhile."""
    seen = await play(door, [[Call("mcp_workshop_write", {"title": "x", "kind": "joke"})]])
    [answer] = seen.answers
    assert answer.failed
    assert "title" in answer.text
    assert "kind" in answer.text
    assert (await outcomes(door), seen.last) == ([("write", "refused")], "done")


async def test_a_tool_that_fails_is_read_by_the_model(door: AgentMCPService, play: Play) -> None:
    """A failure is an answer like any other, and no exception in the agent; what is hidden in it is shown."""
    seen = await play(door, [[Call("mcp_workshop_fail")]])
    [answer] = seen.answers
    assert answer.failed
    assert answer.text.removeprefix("Error: ") == "the saw is blunt\\u200b"
    assert (await outcomes(door), seen.last) == ([("fail", "tool_error")], "done")


async def test_arguments_with_awkward_names_arrive(door: AgentMCPService, play: Play) -> None:
    """A server names its parameters as it likes, also like those of a framework's own functions."""
    names = {"agent": "c", "config": "b", "run_manager": "d", "self": "a"}
    seen = await play(door, [[Call("mcp_workshop_introduce", names)]])
    assert [answer.text for answer in seen.answers] == [
        'introduce {"agent": "c", "config": "b", "run_manager": "d", "self": "a"}'
    ]


async def test_structure_and_the_record_are_kept_for_the_program(door: AgentMCPService, play: Play) -> None:
    """Programs read structure, models read text."""
    seen = await play(door, [[Call("mcp_workshop_count", {"word": "squid"})]])
    [answer] = seen.answers
    assert answer.text == '{"letters": 5}'
    assert answer.beside is not None
    assert answer.beside["structured_content"] == {"letters": 5}
    assert answer.beside["record"]


async def test_pictures_are_shown_to_the_model(door: AgentMCPService, play: Play) -> None:
    """A screenshot that arrives as a note is no screenshot."""
    seen = await play(door, [[Call("mcp_workshop_draw")]])
    [answer] = seen.answers
    assert answer.text.startswith("a dot")
    assert answer.pictures == (b"\x89PNG\r\n\x1a\n",)


async def test_a_bundled_server_works_too(office: AgentMCPService, play: Play) -> None:
    """Not only servers that were written for a test."""
    seen = await play(office, [[Call("mcp_git_git_status")]])
    [answer] = seen.answers
    assert not answer.failed, answer.text
    assert "main" in answer.text


async def test_what_was_revoked_is_not_offered_again(door: AgentMCPService, play: Play) -> None:
    """Grants change while agents live."""
    assert "mcp_workshop_count" in (await play(door, [])).offered
    ann = Caller("operator", member="local:ann", origin="cli")
    await door.change_grant(ann, role=ROLE, server="workshop", tool="count", enabled=False)
    assert "mcp_workshop_count" not in (await play(door, [])).offered
