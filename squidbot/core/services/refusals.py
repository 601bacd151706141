"""Records what was refused before it came to anything: a few at once, then one in a while, so that a flood fills no disk."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from squidbot.core.domain.audit import RecordKind
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import NotRecorded, SquidbotError
from squidbot.core.domain.sign_in import RefusalBudget
from squidbot.core.domain.tools import ToolId
from squidbot.core.services.recording import Recorder


class Refusals:
    """Those of one kind. Whoever floods with another kind takes none of their room."""

    def __init__(self, recorder: Recorder, kind: RecordKind) -> None:
        self._recorder = recorder
        self._kind = kind
        self._budget = RefusalBudget()

    async def note(self, caller: Caller, reason: str, what: Mapping[str, Any], *, server: str = "") -> None:
        """Record one, unless there are too many. Raises nothing: refused it is, with a record or without."""
        missed = self._budget.take(self._recorder.clock.monotonic())
        if missed is None:
            return
        told = {name: value for name, value in {**what, "not_recorded_before": missed}.items() if value}
        attempt = self._recorder.attempt(caller, ToolId(server, self._kind), told, revision="", kind=self._kind)
        with suppress(NotRecorded):
            await self._recorder.refused(attempt, SquidbotError(reason))
