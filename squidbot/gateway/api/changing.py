"""What the API does: calls, grants, tokens, restarts; each is recorded with who asked."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from squidbot.core.domain.errors import InvalidArguments, MCPConnectionError, Problem, ToolNotPermitted, UnknownTool
from squidbot.core.domain.members import Principal
from squidbot.core.domain.shapes import new_token_json, result_json, token_json
from squidbot.core.domain.sign_in import span
from squidbot.core.services.desk import Desk
from squidbot.gateway.api.looking import server_details

Values = Mapping[str, Any]


async def call_tool(desk: Desk, who: Principal, values: Values) -> Any:
    """Call a tool, as `tools call` does."""
    name = values["tool"]
    try:
        called = await desk.call_tool(who, name, values.get("arguments"), role=values.get("role"))
    except (ToolNotPermitted, UnknownTool) as error:
        if who.role is None:
            raise
        # To a role, what it may not use is not there: both are the same answer.
        raise _unknown(name, error.record) from None
    failure = called.result.failure
    if failure is not None and failure.kind == "unavailable":
        raise MCPConnectionError(called.result.text, server=called.definition.server, retry_after=failure.retry_after)
    if failure is not None and failure.kind == "unknown_tool":
        raise _unknown(name, called.result.record)
    return result_json(called.definition, called.result, duration_ms=called.duration_ms)


async def restart(desk: Desk, who: Principal, values: Values) -> Any:
    """End a server and start it anew."""
    return server_details(desk, await desk.restart(who, values["server"]))


async def grant(desk: Desk, who: Principal, values: Values) -> Any:
    """Grant a tool, or with `enabled: false` withdraw it, as `roles grant` does."""
    return await _change(desk, who, values, enabled=values.get("enabled", True))


async def revoke(desk: Desk, who: Principal, values: Values) -> Any:
    """Withdraw a tool, as `roles revoke` does."""
    return await _change(desk, who, values, enabled=False)


async def create_token(desk: Desk, who: Principal, values: Values) -> Any:
    """Make a token: it is shown in this answer, and never again."""
    expires = values.get("expires")
    seconds = None if expires is None else span(expires)
    if expires is not None and seconds is None:
        raise InvalidArguments(
            "the token cannot be made:", [Problem("expires", "must be a time such as 90m, 12h, 30d, 2w or 1y")]
        )
    until = None if seconds is None else desk.now() + seconds
    return new_token_json(await desk.create_token(who, values["role"], name=values["name"], expires=until))


async def revoke_token(desk: Desk, who: Principal, values: Values) -> Any:
    """Take a token back."""
    return token_json(await desk.revoke_token(who, values["token"]))


async def _change(desk: Desk, who: Principal, values: Values, *, enabled: bool) -> Any:
    made = await desk.change_grant(
        who, role=values["role"], server=values["server"], tool=values["tool"], enabled=enabled
    )
    return asdict(made)


def _unknown(name: str, record: str | None) -> UnknownTool:
    error = UnknownTool(f"Unknown tool: {name}")
    error.record = record
    return error
