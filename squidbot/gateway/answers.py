"""How the gateway answers over HTTP: JSON that every reader takes, and one table from errors to codes."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from squidbot.core.domain.errors import (
    ConfigError,
    InvalidArguments,
    MCPConnectionError,
    MCPProtocolError,
    MCPRequestRefused,
    NotAllowed,
    NotFound,
    NotRecorded,
    RateLimited,
    SquidbotError,
    ToolNotPermitted,
    UnknownTool,
)
from squidbot.gateway.mcp.wire import encoded

_KINDS: tuple[tuple[type[SquidbotError], str, int], ...] = (
    (ToolNotPermitted, "not_permitted", 404),
    (UnknownTool, "unknown_tool", 404),
    (NotFound, "not_found", 404),
    (NotAllowed, "not_allowed", 403),
    (InvalidArguments, "invalid_arguments", 422),
    (ConfigError, "settings", 422),
    (RateLimited, "limited", 429),
    (MCPConnectionError, "unavailable", 503),
    (NotRecorded, "not_recorded", 503),
    (MCPRequestRefused, "request_refused", 502),
    (MCPProtocolError, "protocol", 502),
    (SquidbotError, "failed", 500),
)
"""The codes are those of the command line's `--json`; the numbers are the outer surface's table of refusals."""


class JSON(Response):
    """A JSON document."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The document in bytes; what JSON cannot say is replaced."""
        return encoded(content)


def error(
    status: int, code: str, message: str, *, hint: str | None = None, headers: Mapping[str, str] | None = None
) -> JSON:
    """An error in the one form that all errors have."""
    return JSON({"error": {"code": code, "message": message, "hint": hint}}, status, headers=dict(headers or {}))


def refusal(problem: SquidbotError) -> JSON:
    """What somebody is told of an error of ours."""
    code, status = next((code, status) for kind, code, status in _KINDS if isinstance(problem, kind))
    wait = problem.retry_after if isinstance(problem, RateLimited | MCPConnectionError) else None
    headers = {} if wait is None else {"Retry-After": whole_seconds(wait)}
    # Where the trail is stands in that hint: for whoever runs the gateway, not for whoever asks it.
    hint = None if isinstance(problem, NotRecorded) else problem.hint
    return error(status, code, str(problem), hint=hint, headers=headers)


def whole_seconds(seconds: float) -> str:
    """A wait as a header has it: never too short."""
    return str(max(int(-(-seconds // 1)), 1))
