"""The registry in memory: every tool has one name, every name one tool, whatever is called what."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.adapters.registry.memory import InMemoryToolRegistry
from squidbot.core.domain.tools import ToolDefinition, ToolId, ToolResult
from squidbot.core.ports import Counterpart, OnProgress, ToolPort


class Tool:
    """Satisfies `ToolPort`: says who it is."""

    def __init__(self, server: str, tool: str) -> None:
        self.definition = ToolDefinition(server=server, tool=tool, name=tool)

    async def execute(
        self,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        counterpart: Counterpart | None = None,
    ) -> ToolResult:
        return ToolResult(structured=[self.definition.server, self.definition.tool])


def _registry(*tools: tuple[str, str]) -> InMemoryToolRegistry:
    registry = InMemoryToolRegistry()
    for server in dict.fromkeys(server for server, _ in tools):
        registry.replace(server, [Tool(*tool) for tool in tools if tool[0] == server])
    return registry


def _name(registry: InMemoryToolRegistry, server: str, tool: str) -> str:
    found = registry.get(ToolId(server, tool))
    assert found is not None
    return found.definition.name


async def _who(found: ToolPort | None) -> Any:
    assert found is not None
    return (await found.execute({})).structured


@pytest.mark.requirement("C-02")
def test_agents_see_the_server_and_the_tool_in_the_name() -> None:
    """A person who reads a transcript must know who did it."""
    assert _name(_registry(("git", "status")), "git", "status") == "mcp_git_status"
    assert _name(_registry(("my.server", "do it/now")), "my.server", "do it/now") == "mcp_my-server_do-it-now"


@pytest.mark.anyio
@pytest.mark.requirement("C-02", "C-03")
async def test_names_that_clash_are_marked_on_both_sides_and_the_bare_one_means_nobody() -> None:
    """Guessing between two tools would call the wrong one half of the time."""
    registry = _registry(("a_b", "c"), ("a", "b_c"), ("a", "other"))
    assert registry.find("mcp_a_b_c") is None
    first, second = _name(registry, "a_b", "c"), _name(registry, "a", "b_c")
    assert first != second
    assert all(name.startswith("mcp_a_b_c-") and len(name) == len("mcp_a_b_c-") + 8 for name in (first, second))
    assert await _who(registry.find(first)) == ["a_b", "c"]
    assert await _who(registry.find(second)) == ["a", "b_c"]
    assert await _who(registry.find("mcp_a_other")) == ["a", "other"]


@pytest.mark.requirement("C-02")
def test_a_clash_that_ends_gives_the_bare_name_back() -> None:
    """Names depend on what there is, not on what there was."""
    registry = _registry(("a_b", "c"), ("a", "b_c"))
    registry.replace("a", ())
    assert _name(registry, "a_b", "c") == "mcp_a_b_c"
    assert registry.get(ToolId("a", "b_c")) is None


@pytest.mark.requirement("C-02")
def test_a_name_that_is_too_long_is_cut_and_marked() -> None:
    """Providers refuse more than sixty-four characters."""
    name = _name(_registry(("server", "x" * 100)), "server", "x" * 100)
    assert len(name) == 64
    assert name[:55] == ("mcp_server_" + "x" * 100)[:55]


names = st.text(st.sampled_from("ab_-.é/ "), min_size=1, max_size=4)
several = st.lists(st.tuples(names, names), unique=True, max_size=8)


@pytest.mark.requirement("C-02", "C-03")
@settings(deadline=None)
@given(several, st.randoms())
def test_every_tool_has_one_valid_name_whatever_the_order_of_discovery(
    tools: list[tuple[str, str]], chance: Any
) -> None:
    """The way back from a name is a lookup, so two tools must never share one."""
    registry = _registry(*tools)
    shuffled = list(tools)
    chance.shuffle(shuffled)
    found = {tool: _name(registry, *tool) for tool in tools}
    assert found == {tool: _name(_registry(*shuffled), *tool) for tool in tools}
    assert len(set(found.values())) == len(tools)
    for tool, name in found.items():
        assert 1 <= len(name) <= 64
        assert all(character.isascii() and (character.isalnum() or character in "_-") for character in name)
        back = registry.find(name)
        assert back is not None
        assert back.definition.id == tool


def test_a_servers_slice_is_replaced_whole_and_the_others_stay() -> None:
    """A tool that a server no longer has must be gone at once, and nobody else's with it."""
    registry = _registry(("a", "one"), ("a", "two"), ("b", "one"))
    registry.replace("a", [Tool("a", "three")])
    assert [tool.definition.name for tool in registry.tools()] == ["mcp_a_three", "mcp_b_one"]
    assert [tool.definition.tool for tool in registry.tools("a")] == ["three"]
    assert registry.tools("nobody") == ()
    registry.replace("a", ())
    registry.replace("nobody", ())
    assert [tool.definition.name for tool in registry.tools()] == ["mcp_b_one"]


@pytest.mark.anyio
async def test_a_tool_under_another_name_is_still_the_same_tool() -> None:
    """Only the name is the registry's; all else is the tool's own."""
    registry = InMemoryToolRegistry()
    already = Tool("s", "t")
    registry.replace("s", [already])
    named = registry.find("mcp_s_t")
    assert named is not None
    assert (named.definition.tool, await _who(named)) == ("t", ["s", "t"])
    again = InMemoryToolRegistry()
    again.replace("s", [named])
    assert again.find("mcp_s_t") is named
