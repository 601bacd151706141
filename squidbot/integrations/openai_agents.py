"""Tools of a role for the OpenAI Agents SDK: `Agent(tools=await tools_for(door, "backend_developer"))`."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool, ToolOutputImage, ToolOutputText
from agents.tool import FunctionToolCustomDataContext
from agents.tool_context import ToolContext

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
    provider: Provider | None = "openai",
) -> list[FunctionTool]:
    """The tools of a role, or those that match the globs. The door must be entered, in the same loop."""
    return [_function_tool(tool) for tool in await RoleTools(door, role, servers, tools, provider).connected()]


def _function_tool(tool: RoleTool) -> FunctionTool:
    kept: dict[str, dict[str, Any]] = {}

    async def call(context: ToolContext[Any], arguments: str) -> str | list[ToolOutputText | ToolOutputImage]:
        result = await tool.call(arguments)
        kept[context.tool_call_id] = beside(result)
        if result.is_error:
            # Whatever is raised here ends the run, so an error is said.
            return f"Error: {said(result)}"
        shown = [ToolOutputImage(image_url=_url(picture.data, picture.mime_type)) for picture in pictures(result)]
        return [ToolOutputText(text=said(result)), *shown] if shown else said(result)

    def extract(context: FunctionToolCustomDataContext) -> dict[str, Any] | None:
        return kept.pop(context.tool_context.tool_call_id, None)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=call,
        # Strict mode would rewrite the schema, and refuses many.
        strict_json_schema=False,
        custom_data_extractor=extract,
    )


def _url(data: bytes, mime_type: str) -> str:
    return f"data:{mime_type};base64,{b64encode(data).decode('ascii')}"
