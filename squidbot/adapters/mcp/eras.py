"""Finds out which of the protocol's two eras a server speaks, without making anybody wait for it.

`server/discover` goes out first. If it is refused, or nothing came within a second, `initialize` goes out
too, on the same connection; whichever is answered with a result decides. A slow starter is thereby never
misjudged, and a server that ignores what it does not know costs one second, once: verdicts are remembered.
"""

from typing import Any, Literal, TypeAlias

import anyio
import mcp_types as types
from mcp import ClientSession, MCPError
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from squidbot.adapters.mcp.callbacks import CLIENT
from squidbot.adapters.mcp.dispatcher import Wire

Era: TypeAlias = Literal["legacy", "modern"]

_HEAD_START = 1.0
"""Seconds that `server/discover` has before `initialize` follows."""
_LAST_CHANCE = 5.0
"""Seconds that it has once `initialize` was refused."""


async def negotiate(session: ClientSession, wire: Wire, era: Era | None) -> Era:
    """Agree on an era, or on `era` alone. Raises MCPError, RuntimeError or ValidationError, as the SDK does."""
    match era:
        case "legacy":
            await session.initialize()
            return "legacy"
        case "modern":
            session.adopt(await _discover(wire))
            return "modern"
        case None:
            return await _Race(session, wire).run()


class _Race:
    """Both openings on one connection; the first that is answered with a result wins."""

    def __init__(self, session: ClientSession, wire: Wire) -> None:
        self._session = session
        self._wire = wire
        self._refused = anyio.Event()
        self._winner: Era | None = None
        self._failure: Exception | None = None

    async def run(self) -> Era:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._modern, tasks.cancel_scope)
            tasks.start_soon(self._legacy, tasks.cancel_scope)
        if self._winner is None:
            raise self._failure or RuntimeError("the server answered neither discover nor initialize")
        return self._winner

    async def _modern(self, rivals: anyio.CancelScope) -> None:
        try:
            discovered = await _discover(self._wire)
        except (MCPError, ValidationError, RuntimeError):
            self._refused.set()
            return
        self._session.adopt(discovered)
        self._winner = "modern"
        rivals.cancel()

    async def _legacy(self, rivals: anyio.CancelScope) -> None:
        with anyio.move_on_after(_HEAD_START):
            await self._refused.wait()
        try:
            await self._session.initialize()
        except (MCPError, ValidationError, RuntimeError) as error:
            # A slow server may have taken our probe for the opening: then the probe's answer is yet to come.
            self._failure = error
            with anyio.move_on_after(_LAST_CHANCE):
                await self._refused.wait()
            rivals.cancel()
            return
        self._winner = "legacy"
        rivals.cancel()


async def _discover(wire: Wire, version: str = LATEST_MODERN_VERSION) -> types.DiscoverResult:
    """Ask for the stateless era. Raises MCPError, or RuntimeError where no revision is shared."""
    try:
        raw = await wire.send_raw_request(
            "server/discover",
            {"_meta": envelope(version, {})},
            {"cancel_on_abandon": False, "headers": {"MCP-Protocol-Version": version, "Mcp-Method": "server/discover"}},
        )
    except MCPError as error:
        offered = _offered(error)
        if error.code != types.UNSUPPORTED_PROTOCOL_VERSION or not offered or version in offered:
            raise
        return await _discover(wire, offered[-1])
    if isinstance(raw.get("ttlMs"), int) and raw["ttlMs"] < 0:
        raw = {**raw, "ttlMs": 0}
    discovered = types.DiscoverResult.model_validate(raw)
    if not any(known in discovered.supported_versions for known in MODERN_PROTOCOL_VERSIONS):
        raise RuntimeError(f"the server has only {', '.join(discovered.supported_versions)}")
    return discovered


def _offered(error: MCPError) -> list[str]:
    try:
        named = types.UnsupportedProtocolVersionErrorData.model_validate(error.error.data).supported
    except ValidationError:
        return []
    return [version for version in MODERN_PROTOCOL_VERSIONS if version in named]


def envelope(version: str, capabilities: dict[str, Any], log_level: str | None = None) -> dict[str, Any]:
    """The `_meta` that every request of the stateless era carries."""
    meta: dict[str, Any] = {
        types.PROTOCOL_VERSION_META_KEY: version,
        types.CLIENT_INFO_META_KEY: CLIENT.model_dump(mode="json", by_alias=True, exclude_none=True),
        types.CLIENT_CAPABILITIES_META_KEY: capabilities,
    }
    if log_level is not None:
        meta[types.LOG_LEVEL_META_KEY] = log_level
    return meta
