"""Tools of a role for pydantic-ai: `Agent(model, toolsets=[await tools_for(door, "backend_developer")])`."""

from collections.abc import Sequence
from typing import Any

from pydantic_ai import BinaryContent, RunContext, ToolDefinition, ToolFailed, ToolReturn
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.providers import Provider
from squidbot.core.services.door import AgentMCPService
from squidbot.integrations.role_tools import ANY, RoleTool, RoleTools, beside, pictures, said

_ANYTHING = SchemaValidator(core_schema.any_schema())
"""The door holds arguments against their schema, and records those that do not fit."""


async def tools_for(
    door: AgentMCPService,
    role: Caller | str,
    *,
    servers: Sequence[str] = ANY,
    tools: Sequence[str] = ANY,
    provider: Provider | None = None,
) -> "RoleToolset":
    """The tools of a role, or those that match the globs, as a toolset. The door must be entered, in the same loop."""
    wanted = RoleTools(door, role, servers, tools, provider)
    await wanted.connected()
    return RoleToolset(wanted)


class RoleToolset(AbstractToolset[Any]):
    """The tools of a role as they are at each step: what is granted or revoked meanwhile comes and goes."""

    def __init__(self, wanted: RoleTools) -> None:
        self._wanted = wanted
        self._offered: dict[str, RoleTool] = {}

    @property
    def id(self) -> str | None:
        return None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        listed = {tool.name: tool for tool in self._wanted.now()}
        # A tool that is gone by the time of its call is refused by the door, not by a missing key.
        self._offered.update(listed)
        return {name: self._native(tool, ctx.max_retries) for name, tool in listed.items()}

    async def call_tool(self, name: str, tool_args: dict[str, Any], *_: Any) -> ToolReturn[Any]:
        result = await self._offered[name].call(tool_args)
        if result.is_error:
            raise ToolFailed(said(result))
        shown = [BinaryContent(picture.data, media_type=picture.mime_type) for picture in pictures(result)]
        return ToolReturn([said(result), *shown] if shown else said(result), metadata=beside(result))

    def _native(self, tool: RoleTool, max_retries: int) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.parameters,
            metadata={"annotations": dict(tool.definition.annotations)},
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=max_retries, args_validator=_ANYTHING)
