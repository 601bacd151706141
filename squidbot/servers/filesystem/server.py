"""The tools behind the protocol: announced with their schemas, called in threads, failing in words."""

import difflib
import importlib.metadata
import os
import sys
from typing import Any

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from squidbot.servers.filesystem.catalogue import TOOLS, FileTool
from squidbot.servers.filesystem.sandbox import Refused, Sandbox
from squidbot.servers.filesystem.tools import Answer

_AT_ONCE = 8
_INSTRUCTIONS = (
    "Files of one folder. Every path is relative to it, such as 'docs/plan.md'; '.' is the folder itself. "
    "Nothing outside can be reached, and symbolic links are not followed."
)


def build_server(sandbox: Sandbox) -> Server[Any]:
    """A server of the sandbox's files."""
    limiter = anyio.CapacityLimiter(_AT_ONCE)
    tools = {tool.name: tool for tool in TOOLS}
    announced = [_announced(tool) for tool in TOOLS]
    schemas = {tool.name: tool.input_schema for tool in announced}

    async def list_tools(_context: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=announced)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        # A change is finished once begun; a search that nobody waits for any more must not hold up the end.
        return await to_thread.run_sync(
            _outcome, sandbox, tool, params.arguments or {}, limiter=limiter, abandon_on_cancel=not tool.changes
        )

    return Server(
        "squidbot-filesystem",
        version=_version(),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
    )


def _outcome(sandbox: Sandbox, tool: FileTool, arguments: dict[str, Any]) -> types.CallToolResult:
    try:
        answer = _run(sandbox, tool, tool.arguments.model_validate(arguments))
    except ValidationError as error:
        return _failed(f"{tool.name} cannot take these arguments:\n{_problems(tool, error)}")
    except Refused as refusal:
        return _failed(f"{tool.name}: {refusal}")
    except OSError as error:
        return _failed(f"{tool.name}: the system failed: {os.strerror(error.errno or 0)}")
    except Exception as error:  # noqa: BLE001  what went wrong inside is for the log, not for the wire
        print(f"{tool.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return _failed(f"{tool.name}: something went wrong inside this server; its log says what")
    return types.CallToolResult(content=list(answer.blocks), structured_content=answer.result.model_dump(mode="json"))


def _run(sandbox: Sandbox, tool: FileTool, arguments: BaseModel) -> Answer:
    if not tool.changes:
        return tool.run(sandbox, arguments)
    with sandbox.changing:
        return tool.run(sandbox, arguments)


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


def _problems(tool: FileTool, error: ValidationError) -> str:
    names = list(tool.arguments.model_fields)
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        name = ".".join(str(step) for step in problem["loc"])
        if problem["type"] == "extra_forbidden":
            close = difflib.get_close_matches(name, names, n=1)
            lines.append(f"  {name!r}: no such argument" + (f", did you mean {close[0]!r}?" if close else ""))
        else:
            lines.append(f"  {name!r}: {problem['msg']}")
    return "\n".join([*lines, f"It takes {', '.join(names)}."])


def _announced(tool: FileTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_schema(tool.arguments),
        output_schema=_schema(tool.result),
        annotations=tool.annotations,
    )


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's schema without what only the Python side has: titles, and the docstrings of classes."""
    schema = model.model_json_schema(mode="serialization")
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
        part.pop("description", None)
        for field in part.get("properties", {}).values():
            field.pop("title", None)
    return schema


def _version() -> str:
    try:
        return importlib.metadata.version("squidbot-gateway")
    except importlib.metadata.PackageNotFoundError:
        return ""
