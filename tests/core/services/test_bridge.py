"""The bridge: what a simple agent needs to know of tools, and one way to call them."""

from typing import Any

import pytest

from squidbot import MCPClient, MCPConfig, MCPToolBridge, UnknownTool, create_mcp_bridge
from tests.fakes.door import FakeTool
from tests.fixtures.running import plain_entry

pytestmark = pytest.mark.anyio

SERVERS: dict[str, Any] = {"servers": {"plain": {**plain_entry(), "protocol": "legacy"}}}


@pytest.mark.requirement("C-06")
async def test_tools_come_with_flat_parameters() -> None:
    """Small models read a list; they stumble over a schema."""
    async with MCPToolBridge(MCPClient(MCPConfig.from_dict(SERVERS))) as bridge:
        assert bridge.get_tools_for_agent() == []
        assert await bridge.client.connect("plain")  # type: ignore[attr-defined]
        tools = {tool["name"]: tool for tool in bridge.get_tools_for_agent()}
    echo = tools["mcp_plain_echo"]
    assert (echo["server"], echo["tool"], echo["description"]) == ("plain", "echo", "Says the text again")
    assert echo["parameters"] == [
        {"name": "text", "type": "string", "description": "", "required": True, "default": None}
    ]
    assert tools["mcp_plain_pid"]["parameters"] == []


@pytest.mark.requirement("C-06")
async def test_choices_come_as_a_list() -> None:
    """Programs compare them with JSON, in which there is nothing like a tuple."""
    schema = {"properties": {"mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"}}}
    client = MCPClient(MCPConfig())
    client.registry.replace("s", [FakeTool("s", "t", parameters=schema)])
    (tool,) = MCPToolBridge(client).get_tools_for_agent()
    assert tool["parameters"] == [
        {
            "name": "mode",
            "type": "string",
            "description": "",
            "required": False,
            "default": "safe",
            "enum": ["fast", "safe"],
        }
    ]


@pytest.mark.requirement("C-03", "D-04")
async def test_a_tool_is_called_by_its_name_and_a_wrong_name_says_what_was_perhaps_meant() -> None:
    """A model that misspells a name can correct itself."""
    async with await create_mcp_bridge(MCPConfig.from_dict(SERVERS)) as bridge:
        assert (await bridge.invoke_tool("mcp_plain_echo", {"text": "hi"})).text == "hi"
        failed = await bridge.invoke_tool("mcp_plain_echo")
        assert failed.is_error
        with pytest.raises(ValueError, match="Invalid MCP tool name 'mcp_plain_ecco'") as unknown:
            await bridge.invoke_tool("mcp_plain_ecco", {})
        assert isinstance(unknown.value, UnknownTool)
        assert unknown.value.nearest[0] == "mcp_plain_echo"
        with pytest.raises(ValueError, match="Invalid MCP tool name 'echo'"):
            await bridge.invoke_tool("echo", {"text": "hi"})


@pytest.mark.requirement("B-06", "B-12")
async def test_a_server_that_cannot_start_is_skipped_and_leaving_closes_the_others() -> None:
    """One broken entry must not take the rest away, and nothing may be left running."""
    config = MCPConfig.from_dict({"servers": {**SERVERS["servers"], "broken": {"command": "no-such-program"}}})
    async with await create_mcp_bridge(config) as bridge:
        assert {tool["server"] for tool in bridge.get_tools_for_agent()} == {"plain"}
        client: Any = bridge.client
        assert client.status("broken").state == "failed"
    assert client.status("plain").state == "idle"
    assert bridge.get_tools_for_agent() == []
