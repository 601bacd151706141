"""The tool registry in memory: slices per server, and an index of the names that agents see."""

from collections.abc import Sequence
from dataclasses import replace

from squidbot.core.domain.naming import agent_names
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import ToolPort


class InMemoryToolRegistry:
    """Satisfies `ToolRegistry`. A change builds the whole index anew and swaps it in at once."""

    def __init__(self) -> None:
        self._slices: dict[str, tuple[ToolPort, ...]] = {}
        self._by_id: dict[ToolId, ToolPort] = {}
        self._by_name: dict[str, ToolPort] = {}

    def replace(self, server: str, tools: Sequence[ToolPort]) -> None:
        """Put `tools` in the place of all that `server` had."""
        slices = {name: kept for name, kept in self._slices.items() if name != server}
        if tools:
            slices[server] = tuple(tools)
        self._slices = dict(sorted(slices.items()))
        self._index()

    def get(self, tool: ToolId) -> ToolPort | None:
        return self._by_id.get(tool)

    def find(self, name: str) -> ToolPort | None:
        return self._by_name.get(name)

    def tools(self, server: str | None = None) -> Sequence[ToolPort]:
        """Every tool that has a name, in the order of servers and of each server's own list."""
        if server is None:
            return tuple(self._by_name.values())
        return tuple(
            self._by_id[tool.definition.id]
            for tool in self._slices.get(server, ())
            if tool.definition.id in self._by_id
        )

    def _index(self) -> None:
        tools = [tool for kept in self._slices.values() for tool in kept]
        names = agent_names(tool.definition.id for tool in tools)
        by_id = {
            tool.definition.id: _Named.of(tool, names[tool.definition.id])
            for tool in tools
            if tool.definition.id in names
        }
        self._by_name = {tool.definition.name: tool for tool in by_id.values()}
        self._by_id = by_id


class _Named:
    """A tool under the name that agents see; everything else is the tool's own."""

    def __init__(self, tool: ToolPort, name: str) -> None:
        self.definition = replace(tool.definition, name=name)
        self.execute = tool.execute

    @classmethod
    def of(cls, tool: ToolPort, name: str) -> ToolPort:
        return tool if tool.definition.name == name else cls(tool, name)
