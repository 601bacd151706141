"""What happens, as server-sent events: short words for a page that is open, nothing that is not meant for eyes."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from squidbot.core.domain.errors import NotRecorded
from squidbot.core.domain.happenings import Happening, Topic
from squidbot.gateway.dashboard.gate import Hall
from squidbot.gateway.dashboard.sessions import Session
from squidbot.gateway.dashboard.words import NOTHING, one_line, seconds

TOPICS: tuple[Topic, ...] = ("call", "state", "progress", "alert", "grants", "settings", "tools", "tokens")
MOST_STREAMS = 200
"""Pages that are open at a time; one more is asked to come back later."""
_PULSE = 15.0
_CHECK = 2.0
"""Seconds after which it is asked anew whether somebody's token is still good."""
_RETRY_MS = 3_000


class Events:
    """All open streams; `close` ends them, so that a gateway can stop."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._open = 0
        self._closing = anyio.Event()

    def close(self) -> None:
        """End every stream, and open no other: pages come back to whoever answers next."""
        self._closing.set()

    @property
    def streams(self) -> int:
        """How many are open now."""
        return self._open

    async def serve(self, request: Request) -> Response:
        """A stream for somebody who is signed in."""
        try:
            session = await self._hall.sessions.find(request)
        except NotRecorded as error:
            return PlainTextResponse(str(error), 503)
        if session is None:
            return PlainTextResponse("Sign in first.", 401)
        if self._open >= MOST_STREAMS or self._closing.is_set():
            return PlainTextResponse("Too many pages are open.", 503, headers={"Retry-After": "10"})
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        stream = self._stream(session)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def _stream(self, session: Session) -> AsyncIterator[str]:
        self._open += 1
        try:
            with self._hall.desk.listen(session.principal, TOPICS) as heard:
                names = await self._names(session)
                yield f"retry: {_RETRY_MS}\n\n"
                quiet = 0.0
                while not self._closing.is_set():
                    happening = None
                    with anyio.move_on_after(_CHECK):
                        happening = await self._next(heard)
                    if happening is not None:
                        quiet = 0.0
                        names = await self._names(session) if happening.topic == "tokens" else names
                        yield _event(happening, names)
                        continue
                    if not await self._hall.sessions.is_good(session.principal):
                        yield "event: signed-out\ndata: {}\n\n"
                        return
                    quiet += _CHECK
                    if quiet >= _PULSE:
                        quiet = 0.0
                        yield ": still here\n\n"
        except NotRecorded:
            return
        finally:
            self._open -= 1

    async def _next(self, heard: Any) -> Happening | None:
        """The next happening, None when all streams are to end."""
        found: Happening | None = None

        async def wait_for_end() -> None:
            await self._closing.wait()
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_for_end)
            found = await heard.receive()
            tasks.cancel_scope.cancel()
        return found

    async def _names(self, session: Session) -> dict[str, str]:
        return {token.member: token.name for token in await self._hall.desk.tokens(session.principal)}


def _event(happening: Happening, names: Mapping[str, str]) -> str:
    # ASCII alone: no character of foreign text can end the line.
    data = json.dumps(_words(happening, names), separators=(",", ":"))
    return f"event: {happening.topic}\ndata: {data}\n\n"


def _words(happening: Happening, names: Mapping[str, str]) -> dict[str, Any]:
    data = happening.data
    match happening.topic:
        case "call":
            return _call(data, names)
        case "progress":
            return {
                "id": str(data.get("record", "")),
                "role": one_line(data.get("role", ""), 60),
                "server": str(data.get("server") or happening.server or ""),
                "tool": str(data.get("tool", "")),
                "progress": data.get("progress"),
                "total": data.get("total"),
                "words": one_line(data.get("message") or "", 160),
            }
        case "alert":
            return {"words": one_line(data.get("message", ""), 200)}
        case "state":
            return {"server": happening.server, "state": data.get("state")}
        case _:
            return {"server": happening.server}


def _call(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """One row of the list of calls; pages write it as text, never as markup."""
    server, tool = str(record.get("server") or ""), str(record.get("tool") or "")
    member = str(record.get("squad_member_id") or "")
    return {
        "id": str(record.get("id", "")),
        "timestamp": record.get("timestamp"),
        "outcome": record.get("outcome"),
        "kind": record.get("kind", "call"),
        "server": server,
        "tool": tool,
        "label": one_line(f"{server}/{tool}" if server else tool, 120),
        "role": one_line(record.get("role") or NOTHING, 60),
        "by": one_line(names.get(member, member) or NOTHING, 60),
        "took": seconds(record.get("duration")),
        "words": one_line(record.get("error_message") or _as_text(record.get("arguments")), 160),
        "failed": bool(record.get("error_message")),
    }


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
