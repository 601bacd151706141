"""The composition root."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from dependency_injector import providers

from squidbot import MCPClient, MCPConfig, MCPToolBridge, create_mcp_bridge
from squidbot.adapters.mcp.transport import Opening, Streams
from squidbot.adapters.mcp.transports.stdio import open_stdio
from squidbot.adapters.registry.memory import InMemoryToolRegistry
from squidbot.config.schema import MCPServerConfig
from squidbot.container import Container
from tests.fixtures.running import plain_entry

NEED_ARGUMENTS = {
    "find_offered",
    "find_ollama",
    "forget_sign_in",
    "language_model",
    "logging",
    "mapping_of",
    "passing",
    "reload",
    "serve_stdio",
}
"""Actions rather than parts; the commands that do them try them."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings file is found by chance."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.requirement("G-07")
@pytest.mark.parametrize("name", sorted(Container.providers.keys() - NEED_ARGUMENTS))
def test_every_provider_resolves(name: str) -> None:
    """A part that cannot be built is found here, and not by the first user of the command that needs it."""
    provider = Container().providers[name]
    provider()


@pytest.mark.requirement("G-07")
def test_parts_are_shared_within_a_container_and_not_between_two() -> None:
    """One process has one registry; two tests have two."""
    one, two = Container(), Container()
    assert one.client().registry is one.registry()
    assert one.bridge().client is one.client()
    assert one.client() is not two.client()


@pytest.mark.anyio
@pytest.mark.requirement("G-07")
async def test_one_override_swaps_an_adapter() -> None:
    """A test or an extension changes one part and keeps the rest."""
    opened: list[str] = []

    def recorded(config: MCPServerConfig, opening: Opening, /) -> AbstractAsyncContextManager[Streams]:
        opened.append(config.name)
        return open_stdio(config, opening)

    registry = InMemoryToolRegistry()
    config = MCPConfig.from_dict({"servers": {"plain": plain_entry()}})
    container = Container(mcp_config=config, registry=registry)
    container.transports.override(providers.Object({"stdio": recorded}))
    async with container.client() as client:
        assert await client.connect("plain")
        assert opened == ["plain"]
        assert {tool.definition.tool for tool in registry.tools()} == {"echo", "pid"}


@pytest.mark.anyio
async def test_a_bridge_is_ready_when_it_is_made_and_skips_what_cannot_start() -> None:
    """One line gives an agent its tools; a broken server among them costs its own tools only."""
    config = MCPConfig.from_dict(
        {"servers": {"good": plain_entry(), "bad": {"command": "no-such-command", "max_retries": 0}}}
    )
    async with await create_mcp_bridge(config) as bridge:
        assert isinstance(bridge, MCPToolBridge)
        assert [tool["name"] for tool in bridge.get_tools_for_agent()] == ["mcp_good_echo", "mcp_good_pid"]
        result = await bridge.invoke_tool("mcp_good_echo", {"text": "hello"})
        assert (result.text, result.is_error) == ("hello", False)
        client = bridge.client
    assert isinstance(client, MCPClient)
    assert {status.state for status in client.statuses()} == {"idle"}


@pytest.mark.anyio
async def test_without_settings_a_bridge_has_what_ships() -> None:
    """The embedded default works offline, without an account."""
    async with await create_mcp_bridge() as bridge:
        assert "mcp_filesystem_read_file" in {tool["name"] for tool in bridge.get_tools_for_agent()}
