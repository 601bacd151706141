"""Finds out which of the protocol's two eras a server speaks, without making anybody wait for it.

`server/discover` goes out first. If it is refused, or nothing came within a second, `initialize` goes out
too, on the same connection; whichever is answered with a result decides. A slow starter is thereby never
misjudged, and a server that ignores what it does not know costs one second, once: verdicts are remembered.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import anyio
from pydantic import ValidationError

from squidbot.adapters.mcp.callbacks import CLIENT
from squidbot.adapters.mcp.conversation import Conversation
from squidbot.adapters.mcp.introduction import Introduction, discovered
from squidbot.adapters.mcp.protocol import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LOG_LEVEL_KEY,
    METHOD_HEADER,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    VERSION_HEADER,
    MCPError,
)

Era: TypeAlias = Literal["legacy", "modern"]

_HEAD_START = 1.0
"""Seconds that `server/discover` has before `initialize` follows."""
_LAST_CHANCE = 5.0
"""Seconds that it has once `initialize` was refused."""


async def negotiate(conversation: Conversation, era: Era | None) -> Era:
    """Agree on an era, or on `era` alone. Raises MCPError, RuntimeError or ValidationError."""
    match era:
        case "legacy":
            await conversation.initialize()
            return "legacy"
        case "modern":
            conversation.introduction = await _discover(conversation)
            return "modern"
        case None:
            return await _Race(conversation).run()


class _Race:
    """Both openings on one connection; the first that is answered with a result wins."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
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
            introduction = await _discover(self._conversation)
        except (MCPError, ValidationError, RuntimeError):
            self._refused.set()
            return
        self._conversation.introduction = introduction
        self._winner = "modern"
        rivals.cancel()

    async def _legacy(self, rivals: anyio.CancelScope) -> None:
        with anyio.move_on_after(_HEAD_START):
            await self._refused.wait()
        try:
            await self._conversation.initialize()
        except (MCPError, ValidationError, RuntimeError) as error:
            # A slow server may have taken our probe for the opening: then the probe's answer is yet to come.
            self._failure = error
            with anyio.move_on_after(_LAST_CHANCE):
                await self._refused.wait()
            rivals.cancel()
            return
        self._winner = "legacy"
        rivals.cancel()


async def _discover(conversation: Conversation, version: str = MODERN_VERSIONS[-1]) -> Introduction:
    """Ask for the stateless era. Raises MCPError, ValidationError, or RuntimeError where no revision is shared."""
    try:
        raw = await conversation.wire.send_raw_request(
            "server/discover",
            {"_meta": envelope(version, conversation.capabilities)},
            {"cancel_on_abandon": False, "headers": {VERSION_HEADER: version, METHOD_HEADER: "server/discover"}},
        )
    except MCPError as error:
        offered = _offered(error)
        if error.code != UNSUPPORTED_PROTOCOL_VERSION or not offered or version in offered:
            raise
        return await _discover(conversation, offered[-1])
    return discovered(raw)


def _offered(error: MCPError) -> list[str]:
    match error.error.data:
        case {"supported": [*named]}:
            return [version for version in MODERN_VERSIONS if version in named]
        case _:
            return []


def envelope(version: str, capabilities: Mapping[str, Any], log_level: str | None = None) -> dict[str, Any]:
    """The `_meta` that every request of the stateless era carries."""
    meta: dict[str, Any] = {
        PROTOCOL_VERSION_KEY: version,
        CLIENT_INFO_KEY: CLIENT,
        CLIENT_CAPABILITIES_KEY: capabilities,
    }
    if log_level is not None:
        meta[LOG_LEVEL_KEY] = log_level
    return meta
