"""One tool of one server, as the core calls it."""

from collections.abc import Mapping
from typing import Any

from squidbot.core.domain.tools import ToolDefinition, ToolResult
from squidbot.core.ports import Counterpart, OnProgress, ToolSource


class MCPToolAdapter:
    """One tool of one server, as the core calls it."""

    def __init__(self, client: ToolSource, definition: ToolDefinition) -> None:
        self.definition = definition
        self._client = client

    async def execute(
        self,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        counterpart: Counterpart | None = None,
    ) -> ToolResult:
        """Run it. Raises nothing but cancellation."""
        return await self._client.call_tool(
            self.definition.server,
            self.definition.tool,
            arguments,
            timeout=timeout,
            on_progress=on_progress,
            counterpart=counterpart,
        )
