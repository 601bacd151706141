"""Tools for agents that want nothing but names, flat parameters and one call to make."""

from collections.abc import Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any, Protocol, Self

from squidbot.core.domain.errors import UnknownTool
from squidbot.core.domain.naming import nearest
from squidbot.core.domain.schemas import flat_parameters
from squidbot.core.domain.tools import Parameter, ToolDefinition, ToolResult
from squidbot.core.ports import ToolRegistry


class Toolbox(Protocol):
    """What the bridge stands on: a client with a registry, whose context it enters and leaves."""

    @property
    def registry(self) -> ToolRegistry: ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class MCPToolBridge:
    """The tools of a client under the names that agents see. Leaving the context closes the client.

    This is the unguarded toolbox, for programs that are their own master: no roles, no limits, no records.
    """

    def __init__(self, client: Toolbox) -> None:
        self.client = client

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.__aexit__(kind, error, trace)

    def get_tools_for_agent(self) -> list[dict[str, Any]]:
        """Every tool: `name`, `description`, `parameters` as a flat list, `server`, `tool`."""
        return [_flat(tool.definition) for tool in self.client.registry.tools()]

    async def invoke_tool(self, tool_name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Call a tool by the name that agents see. Raises ValueError for a name that is no tool's, nothing else."""
        tool = self.client.registry.find(tool_name)
        if tool is None:
            names = [known.definition.name for known in self.client.registry.tools()]
            raise UnknownTool(f"Invalid MCP tool name {tool_name!r}", nearest=nearest(tool_name, names))
        return await tool.execute(arguments or {})


def _flat(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": [_plain(parameter) for parameter in flat_parameters(tool.parameters)],
        "server": tool.server,
        "tool": tool.tool,
    }


def _plain(parameter: Parameter) -> dict[str, Any]:
    """As the JSON that it is going to be: choices are a list, and are there only where there are any."""
    plain = asdict(parameter)
    if parameter.enum is None:
        del plain["enum"]
    else:
        plain["enum"] = list(parameter.enum)
    return plain
