"""What all toolkits share: which tools an agent is given, and what it is told of a call."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from squidbot import AgentMCPService, Caller, ImageContent, TextContent, ToolResult
from squidbot.core.domain.audit import RecordFilter
from squidbot.integrations.role_tools import RoleTools, beside, pictures, said
from tests.fakes.door import FakeTool, World
from tests.integrations.scene import ROLE, workplace
from tests.integrations.workshop import SCHEMAS

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-11")]

ANN = Caller("operator", member="local:ann", origin="cli")


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[AgentMCPService]:
    async with workplace(tmp_path) as opened:
        yield opened


async def records(door: AgentMCPService) -> list[Any]:
    store: Any = door.recorder._log
    return [record async for record in store.records(RecordFilter())]


async def test_globs_give_an_agent_fewer_tools_than_its_role_has(door: AgentMCPService) -> None:
    """An agent with one job needs the tools of that job; nothing is gained that the role has not."""
    some = await RoleTools(door, ROLE, servers=["work*"], tools=["m*", "secret"]).connected()
    assert [tool.name for tool in some] == ["mcp_workshop_meet"]


async def test_an_unknown_role_is_given_nothing(door: AgentMCPService) -> None:
    """No role, no tools; and no text makes anybody the operator."""
    assert await RoleTools(door, "ghost").connected() == []
    assert await RoleTools(door, "operator").connected() == []


async def test_a_tool_that_was_revoked_after_it_was_listed_is_refused(door: AgentMCPService) -> None:
    """The list is a view; the guard is at the call."""
    [count] = await RoleTools(door, ROLE, tools=["count"]).connected()
    await door.change_grant(ANN, role=ROLE, server="workshop", tool="count", enabled=False)
    result = await count.call({"word": "squid"})
    assert result.is_error
    assert "may not use 'count' of server 'workshop'" in said(result)
    assert [(r.id, r.outcome) for r in await records(door) if r.tool == "count" and r.outcome == "refused"] == [
        (result.record, "refused")
    ]


@pytest.mark.parametrize("given", ["{not json", "[1]", '"text"', None, "[" * 5000])
async def test_what_is_no_object_of_arguments_is_refused_and_recorded(door: AgentMCPService, given: Any) -> None:
    """Models write broken JSON now and then; they are told, and it is on record that they tried."""
    [count] = await RoleTools(door, ROLE, tools=["count"]).connected()
    result = await count.call(given)
    assert (result.is_error, said(result)) == (
        True,
        "the arguments of 'mcp_workshop_count' must be one JSON object; nothing was called",
    )
    [record] = await records(door)
    assert (record.id, record.outcome, record.tool) == (result.record, "refused", "count")


async def test_the_json_of_arguments_will_do(door: AgentMCPService) -> None:
    """Some frameworks hand on what the model wrote; nothing at all is no arguments."""
    tools = {tool.definition.tool: tool for tool in await RoleTools(door, ROLE, servers=["workshop"]).connected()}
    assert said(await tools["count"].call('{"word": "ink"}')) == '{"letters": 3}'
    assert said(await tools["draw"].call("")).startswith("a dot")


async def test_no_framework_can_write_into_the_schemas_that_guard_the_door(door: AgentMCPService) -> None:
    """Several frameworks rewrite schemas in place, and the next call is checked against the original."""
    wanted = RoleTools(door, ROLE, tools=["write"])
    [write] = await wanted.connected()
    write.parameters["properties"]["title"].clear()
    [again] = wanted.now()
    assert again.parameters == SCHEMAS["write"]


async def test_a_tool_that_a_provider_refuses_is_left_out_alone(caplog: pytest.LogCaptureFixture) -> None:
    """One odd tool must not cost an agent all others; who set it up reads why."""
    odd = FakeTool("box", "odd", parameters={"type": "object", "properties": {"é": {"type": "string"}}})
    union = FakeTool("box", "union", parameters={"type": "object", "oneOf": [{"required": ["a"]}]})
    world = World([odd, union])
    with caplog.at_level(logging.WARNING):
        fit = list(RoleTools(world.door, ANN, provider="anthropic").now())
    assert [tool.name for tool in fit] == ["mcp_box_union"]
    assert "oneOf" not in fit[0].parameters
    assert "mcp_box_odd is left out" in caplog.text
    assert len(list(RoleTools(world.door, ANN).now())) == 2


def test_a_model_reads_text_else_structure_and_nothing_hidden() -> None:
    """What people do not see, models must not be told in secret."""
    assert said(ToolResult((TextContent("a\u200bb"),))) == "a\\u200bb"
    assert said(ToolResult(structured={"n": "a\u202eb"})) == '{"n": "a\\u202eb"}'
    assert said(ToolResult()) == ""


def test_pictures_and_structure_are_found_again() -> None:
    """They go where a framework has a place for them."""
    picture = ImageContent(b"png", "image/png")
    result = ToolResult((TextContent("a"), picture), structured=[1], record="r1")
    assert pictures(result) == [picture]
    assert beside(result) == {"structured_content": [1], "record": "r1"}
