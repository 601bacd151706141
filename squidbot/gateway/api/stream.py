"""Calls as they end, as server-sent events."""

from collections.abc import AsyncIterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import anyio
from starlette.responses import StreamingResponse

from squidbot.core.domain.members import Principal
from squidbot.core.services.desk import Desk
from squidbot.gateway.mcp.wire import encoded

_SILENCE = 15.0
"""Seconds after which a word goes out, so that nobody in between takes the stream for dead."""
_GLOBS = ("role", "server", "tool")
_WORDS = ("outcome", "kind")


async def calls(desk: Desk, who: Principal, values: Mapping[str, Any]) -> StreamingResponse:
    """Records from now on, until whoever listens goes away, or is no longer let in."""
    who.require("look")
    return StreamingResponse(_events(desk, who, values), media_type="text/event-stream")


async def _events(desk: Desk, who: Principal, values: Mapping[str, Any]) -> AsyncIterator[bytes]:
    with desk.listen(who, {"call"}) as happenings:
        yield b": listening\n\n"
        while True:
            with anyio.move_on_after(_SILENCE) as waiting:
                happening = await happenings.receive()
            if waiting.cancelled_caught:
                yield b": still here\n\n"
            elif _is_wanted(happening.data, values):
                yield b"event: call\ndata: " + encoded(happening.data) + b"\n\n"


def _is_wanted(record: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    globs = all(name not in values or fnmatchcase(str(record.get(name)), values[name]) for name in _GLOBS)
    return globs and all(name not in values or record.get(name) == values[name] for name in _WORDS)
