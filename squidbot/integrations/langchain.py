"""Tools of a role for LangChain: `model.bind_tools(await tools_for(door, "backend_developer"))`, called with `ainvoke`."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.tools import BaseTool, ToolException

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
) -> list[BaseTool]:
    """The tools of a role, or those that match the globs. The door must be entered, in the same loop."""
    return [
        GuardedTool(name=tool.name, description=tool.description, args_schema=tool.parameters, tool=tool)
        for tool in await RoleTools(door, role, servers, tools, provider).connected()
    ]


class GuardedTool(BaseTool):
    """A tool behind the guarded door; a refusal or a failure is a message of status `error`, never an exception."""

    tool: Any
    handle_tool_error: bool = True
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def _to_args_and_kwargs(self, tool_input: Any, *_: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # As one value: spread out, an argument called `self` or `config` would meet one of LangChain's own.
        return (tool_input,), {}

    async def _arun(self, arguments: Any) -> tuple[str | list[dict[str, Any]], dict[str, Any]]:
        tool: RoleTool = self.tool
        result = await tool.call(arguments)
        if result.is_error:
            raise ToolException(said(result))
        shown = [
            {"type": "image", "base64": b64encode(picture.data).decode("ascii"), "mime_type": picture.mime_type}
            for picture in pictures(result)
        ]
        return [{"type": "text", "text": said(result)}, *shown] if shown else said(result), beside(result)

    def _run(self, arguments: Any) -> Any:
        raise NotImplementedError(f"{self.name!r} can only be awaited: use `ainvoke`")
