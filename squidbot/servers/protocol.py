"""Tools behind the protocol: announced with their schemas, called within bounds, failing in words."""

import difflib
import importlib.metadata
import inspect
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from squidbot.servers.refusal import Refused
from squidbot.servers.tools import Answer, Tool, World

_AT_ONCE = 8


def build_server(name: str, *, instructions: str, tools: Sequence[Tool[World]], world: World) -> Server[Any]:
    """A server, announced as `squidbot-NAME`, of `tools` that work on `world`."""
    limiter = anyio.CapacityLimiter(_AT_ONCE)
    known = {tool.name: tool for tool in tools}
    announced = [_announced(tool) for tool in tools]
    schemas = {tool.name: tool.input_schema for tool in announced}

    async def list_tools(_context: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=announced)

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = known.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await _outcome(tool, world, params.arguments or {}, limiter)

    return Server(
        f"squidbot-{name}",
        version=_version(),
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
    )


async def _outcome(
    tool: Tool[World], world: World, arguments: dict[str, Any], limiter: anyio.CapacityLimiter
) -> types.CallToolResult:
    try:
        answer = await _run(tool, world, tool.arguments.model_validate(arguments), limiter)
    except ValidationError as error:
        return _failed(f"{tool.name} cannot take these arguments:\n{_problems(tool.arguments, error)}")
    except Refused as refusal:
        return _failed(f"{tool.name}: {refusal}")
    except OSError as error:
        return _failed(f"{tool.name}: the system failed: {os.strerror(error.errno or 0)}")
    except Exception as error:  # noqa: BLE001  what went wrong inside is for the log, not for the wire
        print(f"{tool.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return _failed(f"{tool.name}: something went wrong inside this server; its log says what")
    return types.CallToolResult(content=list(answer.blocks), structured_content=answer.result.model_dump(mode="json"))


async def _run(tool: Tool[World], world: World, asked: BaseModel, limiter: anyio.CapacityLimiter) -> Answer:
    """A change is finished once begun; what only reads and nobody waits for any more must not hold up the end."""
    if not inspect.iscoroutinefunction(tool.run):
        plain = cast("Callable[[World, Any], Answer]", tool.run)
        return await to_thread.run_sync(plain, world, asked, limiter=limiter, abandon_on_cancel=not tool.changes)
    async with limiter:
        with anyio.CancelScope(shield=tool.changes):
            answer = await cast("Awaitable[Answer]", tool.run(world, asked))
    return answer


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


def _problems(arguments: type[BaseModel], error: ValidationError) -> str:
    names = list(arguments.model_fields)
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        name = ".".join(str(step) for step in problem["loc"])
        words = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            close = difflib.get_close_matches(name, names, n=1)
            words = "no such argument" + (f", did you mean {close[0]!r}?" if close else "")
        # What is wrong with them together has no name.
        lines.append(f"  {name!r}: {words}" if name else f"  {words}")
    return "\n".join([*lines, f"It takes {', '.join(names)}."])


def _announced(tool: Tool[Any]) -> types.Tool:
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
