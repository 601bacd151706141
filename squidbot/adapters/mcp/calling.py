"""A request's failure in words, for an agent and for a person."""

from typing import Any

from pydantic import ValidationError

from squidbot.adapters.mcp.channel import ChannelClosed
from squidbot.adapters.mcp.content import asks_for_input
from squidbot.adapters.mcp.dispatcher import WireError
from squidbot.adapters.mcp.http_outcome import HINTS, HTTPFailure, failure_of
from squidbot.adapters.mcp.protocol import PARSE_ERROR, MCPError
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.content import TextContent
from squidbot.core.domain.errors import MCPConnectionError, MCPProtocolError, MCPRequestRefused, Problem, SquidbotError
from squidbot.core.domain.text import blanked, visible
from squidbot.core.domain.tools import Failure, ToolDefinition, ToolResult
from squidbot.core.ports import SchemaCheck

_LONGEST = 2_000
_LARGEST_DATA = 65_536


def clean(text: str, config: MCPServerConfig) -> str:
    """A server's words as one line that can be shown: no secrets, nothing unseen, no end of it."""
    # Cut before it is cleaned, which takes long; blanked before it is cut, so that no half of a secret is left.
    short = blanked(text, config.secrets)[: 4 * _LONGEST]
    return blanked(visible(short, newlines=False), config.secrets)[:_LONGEST]


def http_failure(error: MCPError) -> HTTPFailure | None:
    """What HTTP had to say about a failed request, if that was the way it went."""
    return failure_of(error.error.data)


def failed_call(error: MCPError, tool: str, *, config: MCPServerConfig, timeout: float) -> ToolResult:
    """The result that stands for a call which did not come to one of its own."""
    reason = clean(error.error.message, config)
    http = http_failure(error)
    if isinstance(error, WireError):
        match error.kind:
            case "timeout":
                words = f"{tool!r} of server {config.name!r} did not answer within {timeout:g} s; the server was told to stop"
            case "unavailable":
                words = unavailable(config.name, reason)
            case _:
                words = f"server {config.name!r}, tool {tool!r}: {reason}"
        return ToolResult.failed(words, error.kind)
    if http is not None and http.status is None:
        return ToolResult.failed(unavailable(config.name, reason), "unavailable", retry_after=http.retry_after)
    return ToolResult.failed(
        f"server {config.name!r}, tool {tool!r}: {reason}",
        "protocol" if error.code == PARSE_ERROR else "server",
        status=http.status if http else None,
        retry_after=http.retry_after if http else None,
        error=_said(error, config) if http is None else None,
    )


def _said(error: MCPError, config: MCPServerConfig) -> dict[str, Any]:
    """The server's own error, for a client that speaks the same protocol."""
    said = {"code": error.code, "message": clean(error.error.message, config)}
    data = error.error.data
    return said if data is None or len(str(data)) > _LARGEST_DATA else {**said, "data": data}


def unavailable(server: str, reason: str) -> str:
    """How a call to a server that is not there is answered."""
    return f"server {server!r} is not available: {reason}"


def request_error(error: MCPError, what: str, config: MCPServerConfig) -> SquidbotError:
    """What a failed `prompts/get` or `resources/read` raises."""
    message = f"server {config.name!r}, {what}: {clean(error.error.message, config)}"
    http = http_failure(error)
    if error.code == PARSE_ERROR:
        return MCPProtocolError(message)
    unreached = http is not None and http.status not in (400, 404, 422)
    if isinstance(error, WireError) or unreached:
        return MCPConnectionError(message, server=config.name, status=http.status if http else None)
    return MCPRequestRefused(message, error=_said(error, config) if http is None else None)


async def checked(result: ToolResult, tool: ToolDefinition, schemas: SchemaCheck | None) -> ToolResult:
    """`result` held against the tool's output schema; a mismatch is an error that keeps the text."""
    if tool.output_schema is None or result.is_error or schemas is None or asks_for_input(result.raw):
        return result
    if result.structured is None:
        problems: list[Problem] = [Problem("", "the structured content that the tool promises is missing")]
    else:
        problems = list(await schemas.problems(tool.output_schema, result.structured))
    if not problems:
        return result
    listed = visible("; ".join(str(problem) for problem in problems[:5]), newlines=False)
    note = TextContent(f"[the structured content of {tool.tool!r} does not fit its output schema: {listed}]")
    return ToolResult(
        content=(*result.content, note),
        structured=None,
        is_error=True,
        raw=result.raw,
        failure=Failure("protocol"),
    )


def connection_error(error: BaseException, config: MCPServerConfig, end: ChannelClosed | None) -> MCPConnectionError:
    """Why a server could not be reached or was lost: which, by what way, for what reason, and what to try."""
    found = _leaf(error)
    command = repr(blanked(config.command or "", config.secrets))
    where = f"url {blanked(config.url, config.secrets)}" if config.url else f"command {command}"
    words: str | None = None
    hint: str | None = None
    status: int | None = None
    retry_after: float | None = None
    detail = ""
    match found:
        case MCPConnectionError():
            words, reason, hint = str(found), found.reason, found.hint
            status, retry_after, permanent = found.status, found.retry_after, found.permanent
        case MCPError():
            http = http_failure(found)
            reason = f"it refused the opening: {found.error.message}" if http is None else found.error.message
            if http is not None:
                status, retry_after, hint = http.status, http.retry_after, http.hint or None
            permanent = found.permanent if isinstance(found, WireError) else http is None or http.permanent
            permanent |= status is not None and 400 <= status < 500 and status not in (408, 425, 429)
        case ValidationError():
            reason, permanent = f"it answered the opening with what is no valid answer{_first_fault(found)}", True
        case MemoryError():
            reason, permanent = "this machine has no more memory to give", False
        case OSError():
            reason, permanent = found.strerror or type(found).__name__, False
        case _:
            reason, permanent = str(found) or type(found).__name__, isinstance(found, RuntimeError)
    if end is not None and not isinstance(found, MCPConnectionError):
        reason, detail, hint = str(end), end.detail, end.hint or hint
        status, permanent = end.status or status, False
    words = clean(words or reason, config)
    lines = [words if command in words else f"{where}: {words}"]
    lines += [f"    {line}" for line in blanked(visible(detail), config.secrets).splitlines()]
    return MCPConnectionError(
        "\n".join(lines),
        server=config.name,
        reason=clean(reason, config),
        hint=blanked(hint, config.secrets) if hint else HINTS.get(status or 0),
        status=status,
        retry_after=retry_after,
        permanent=permanent,
    )


def _first_fault(error: ValidationError) -> str:
    """Where an answer is not valid first, and how."""
    for fault in error.errors(include_url=False, include_input=False, include_context=False)[:1]:
        return f": {'.'.join(map(str, fault['loc']))[:80]}: {fault['msg'][:120]}"
    return ""


def _leaf(error: BaseException) -> BaseException:
    """The first real cause in a nest of groups, one that says more than that a connection ended if there is one."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [_leaf(inner) for inner in error.exceptions]
    telling = [leaf for leaf in leaves if isinstance(leaf, MCPConnectionError)]
    return (telling or leaves)[0]
