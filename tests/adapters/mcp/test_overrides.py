"""Tools under other names, in other words, with arguments that are set already."""

from typing import Any

import pytest

from squidbot import MCPClient, MCPConfig
from squidbot.adapters.mcp.overrides import overridden
from squidbot.config.schema import ToolOverride
from squidbot.core.domain.tools import ToolDefinition
from tests.fixtures.running import plain_entry

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"branch": {}, "force": {}}, "required": ["branch", "force"]}
PUSH = ToolDefinition("git", "push", "push", "Pushes", SCHEMA)
LOG = ToolDefinition("git", "log", "log", "Logs")


def shown(**overrides: Any) -> dict[str, ToolDefinition]:
    made = {name: ToolOverride.model_validate(entry) for name, entry in overrides.items()}
    return {tool.tool: tool for tool in overridden([PUSH, LOG], made, server="git")}


@pytest.mark.requirement("C-10")
def test_a_renamed_tool_takes_the_place_of_the_old_name() -> None:
    """Grants survive a server's renaming."""
    tools = shown(git_push={"tool": "push"})
    assert list(tools) == ["log", "git_push"]
    assert (tools["git_push"].upstream, tools["git_push"].description) == ("push", "Pushes")


@pytest.mark.requirement("C-10")
def test_an_alias_with_fixed_arguments_stands_beside_the_tool_and_hides_them() -> None:
    """A narrow tool made of a wide one."""
    tools = shown(push_gently={"tool": "push", "arguments": {"force": False}, "description": "Never by force"})
    assert list(tools) == ["push", "log", "push_gently"]
    gentle = tools["push_gently"]
    assert (gentle.fixed, gentle.description) == ({"force": False}, "Never by force")
    assert gentle.parameters == {"type": "object", "properties": {"branch": {}}, "required": ["branch"]}
    assert tools["push"].parameters == SCHEMA


@pytest.mark.requirement("C-10")
def test_a_tool_can_be_described_anew_and_kept_or_dropped_at_will() -> None:
    """The last word is the settings'."""
    assert shown(log={"description": "Shows history"})["log"].description == "Shows history"
    assert list(shown(history={"tool": "log", "keep": True})) == ["push", "log", "history"]
    assert list(shown(p={"tool": "push", "arguments": {"force": False}, "keep": False})) == ["log", "p"]


def test_an_override_of_nothing_is_left_out_with_a_warning() -> None:
    """A misspelt one must not take the others with it."""
    assert list(shown(x={"tool": "psuh"})) == ["push", "log"]


@pytest.mark.requirement("C-10")
async def test_a_real_server_is_called_by_its_own_name_with_the_fixed_arguments() -> None:
    """What the settings promise must arrive at the server."""
    overrides = {"say": {"tool": "echo"}, "say_hello": {"tool": "echo", "arguments": {"text": "hello"}}}
    config = MCPConfig.from_dict({"servers": {"plain": {**plain_entry(), "overrides": overrides}}})
    async with MCPClient(config) as client:
        assert await client.connect("plain")
        names = {tool.name for tool in client.get_available_tools()}
        assert {"mcp_plain_say", "mcp_plain_say_hello"} <= names
        assert "mcp_plain_echo" not in names
        assert (await client.call_tool("plain", "say", {"text": "hi"})).text == "hi"
        assert (await client.call_tool("plain", "say_hello", {"text": "never"})).text == "hello"
