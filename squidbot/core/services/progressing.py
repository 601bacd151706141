"""Tells whoever watches of a call's progress: never more often than they can follow."""

import math

from squidbot.core.domain.audit import ToolCall
from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.redaction import Redactor
from squidbot.core.ports import Clock, OnProgress
from squidbot.core.services.hub import Hub

_APART = 0.1
"""Seconds between two happenings of one call."""
_LONGEST = 500


class Progressing:
    """Satisfies `OnProgress`: says it on the hub, and hands it on to the caller, who hears all of it."""

    def __init__(
        self, call: ToolCall, on_progress: OnProgress | None, *, hub: Hub, clock: Clock, redactor: Redactor
    ) -> None:
        self._call = call
        self._on_progress = on_progress
        self._hub = hub
        self._clock = clock
        self._redactor = redactor
        self._last = float("-inf")
        self._ended = False

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = self._clock.monotonic()
        # The last word is told in any case, once: or a watcher would see a call stop just before its end.
        ends = not self._ended and total is not None and progress >= total
        if (now - self._last >= _APART or ends) and math.isfinite(progress):
            self._last, self._ended = now, self._ended or ends
            self._hub.publish(self._happening(progress, total, message))
        if self._on_progress is not None:
            await self._on_progress(progress, total, message)

    def _happening(self, progress: float, total: float | None, message: str | None) -> Happening:
        call = self._call
        data = {
            "record": call.id,
            "role": call.caller.role,
            "server": call.tool.server,
            "tool": call.tool.tool,
            "progress": progress,
            "total": total if total is not None and math.isfinite(total) else None,
            "message": None if message is None else self._redactor.text(message[:_LONGEST]),
        }
        return Happening("progress", call.tool.server, data)
