"""Tools of a role for Agno: `Agent(tools=[await tools_for(door, "backend_developer")])`, run with `arun`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agno.exceptions import AgentRunException
from agno.media import Image
from agno.tools import Function, Toolkit
from agno.tools.function import ToolResult

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.providers import Provider
from squidbot.core.services.door import AgentMCPService
from squidbot.integrations.role_tools import ANY, RoleTool, RoleTools, beside, pictures, said


async def tools_for(
    door: AgentMCPService,
    role: Caller | str,
    *,
    servers: Sequence[str] = ANY,
    tools: Sequence[str] = ANY,
    provider: Provider | None = None,
) -> Toolkit:
    """The tools of a role, or those that match the globs, as a toolkit. The door must be entered, in the same loop."""
    found = await RoleTools(door, role, servers, tools, provider).connected()
    return Toolkit(name="squidbot", tools=[_function(tool) for tool in found])


def _function(tool: RoleTool) -> Function:
    return Function(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        entrypoint=_entrypoint(tool),
        skip_entrypoint_processing=True,
    )


def _entrypoint(tool: RoleTool) -> Callable[..., Awaitable[ToolResult]]:
    async def call(**arguments: Any) -> ToolResult:
        result = await tool.call(arguments)
        if result.is_error:
            # Agno's own way to fail: the model reads it, and the run goes on without a stack trace.
            raise AgentRunException(said(result))
        images = [Image(content=picture.data, mime_type=picture.mime_type) for picture in pictures(result)]
        return ToolResult(content=said(result), metadata=beside(result), images=images or None)

    return call
