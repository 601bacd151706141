"""How a refusal looks on the wire of MCP: the table of the outer surface, in one function."""

from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from squidbot.core.domain.errors import (
    InvalidArguments,
    MCPConnectionError,
    MCPRequestRefused,
    NotRecorded,
    RateLimited,
    SquidbotError,
    ToolNotPermitted,
    UnknownTool,
)

NOT_RECORDED = "not recorded, not done"


def refused(error: SquidbotError, what: str, name: str) -> dict[str, Any]:
    """The result that says no to a tool's call. Raises MCPError for what is no result: a name that means nothing here.

    What a role may not use and what nobody has look the same. For a prompt or a resource, which have no results that
    are errors, all of it is raised.
    """
    meta: dict[str, Any] = {}
    match error:
        case ToolNotPermitted() | UnknownTool():
            raise MCPError(INVALID_PARAMS, f"Unknown {what}: {name}")
        case InvalidArguments():
            words, code = str(error), INVALID_PARAMS
        case RateLimited(retry_after=retry_after):
            words, code, meta = str(error), INTERNAL_ERROR, {"retry_after": retry_after}
        case NotRecorded():
            words, code = NOT_RECORDED, INTERNAL_ERROR
        case MCPRequestRefused(error=dict(said)) if what != "tool":
            raise MCPError(said["code"], said["message"], said.get("data"))
        case MCPConnectionError(reason=reason, server=server):
            words, code = f"server {server!r} is not available: {reason}", INTERNAL_ERROR
        case _:
            words, code = str(error), INTERNAL_ERROR
    if what != "tool":
        raise MCPError(code, words, meta or None)
    wire: dict[str, Any] = {"content": [{"type": "text", "text": words}], "isError": True}
    return {**wire, "_meta": meta} if meta else wire
