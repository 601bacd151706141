"""What the core calls, and nothing else: each port is a noun with two or three methods.

Implementations satisfy these structurally; none of them inherits.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from squidbot.core.domain.errors import Problem
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.tools import ToolDefinition, ToolId, ToolResult


class OnProgress(Protocol):
    """Hears of a call's progress: how far, of how much, and a word about it."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class ToolPort(Protocol):
    """One tool that can be executed."""

    @property
    def definition(self) -> ToolDefinition: ...

    async def execute(
        self,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> ToolResult:
        """Run the tool. Raises nothing but cancellation: a failure is a result with `is_error`."""
        ...


class ToolRegistry(Protocol):
    """The index of all tools. A server's slice is replaced whole, so that no reader sees half a change."""

    def replace(self, server: str, tools: Sequence[ToolPort]) -> None:
        """Put `tools` in the place of all that `server` had; an empty sequence removes them."""
        ...

    def get(self, tool: ToolId) -> ToolPort | None: ...

    def find(self, name: str) -> ToolPort | None:
        """The tool that agents know by `name`."""
        ...

    def tools(self, server: str | None = None) -> Sequence[ToolPort]:
        """Every tool, or one server's, with the names that agents see."""
        ...


class ToolSource(Protocol):
    """Where tools come from: servers that can be connected, and asked how they are."""

    async def connect(self, server_name: str) -> bool: ...

    async def disconnect(self, server_name: str) -> None: ...

    def status(self, server_name: str) -> ServerStatus:
        """Raises KeyError for a name that the settings do not have."""
        ...

    def get_available_tools(self, server_name: str | None = None) -> list[ToolDefinition]: ...

    async def call_tool(
        self,
        server_name: str,
        tool_name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> ToolResult:
        """Raises nothing but cancellation."""
        ...


class SchemaCheck(Protocol):
    """Holds a value against a JSON Schema that somebody else wrote."""

    async def problems(self, schema: Mapping[str, Any], value: Any) -> Sequence[Problem]:
        """All that does not fit, empty if it fits. A schema that is itself no schema constrains nothing."""
        ...

    async def aclose(self) -> None:
        """End whatever was started for the checks; a later check may start it again."""
        ...
