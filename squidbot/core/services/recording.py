"""Writes down every attempt: what is about to happen before it does, and how it ended before anybody is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from squidbot.core.domain.audit import Intent, Outcome, RecordKind, ToolExecution, outcome_of
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.content import text_of
from squidbot.core.domain.errors import RateLimited, SquidbotError
from squidbot.core.domain.recorded import stored, stored_message, stored_name, stored_result, without_secrets
from squidbot.core.domain.redaction import Redactor
from squidbot.core.domain.tools import ToolId, ToolResult
from squidbot.core.ports import AuditLog, CallObserver, Clock
from squidbot.core.services.chance import random_bytes
from squidbot.core.services.patience import aside

_FRESH = 1.0
"""Seconds for which a log that has just been written to is trusted to take the next record too."""


def new_record_id(timestamp: float) -> str:
    """An id that sorts by time and that nobody can guess."""
    return f"{int(timestamp * 1000):012x}{random_bytes(10).hex()}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What somebody tries; `began` is on the monotonic clock."""

    id: str
    timestamp: str
    began: float
    caller: Caller
    tool: ToolId
    arguments: str
    revision: str
    kind: RecordKind


class Recorder:
    """Turns attempts into records. Nothing raised here is a secret: all text goes through the redactor first."""

    def __init__(
        self, log: AuditLog, *, clock: Clock, redactor: Redactor, observers: Sequence[CallObserver] = ()
    ) -> None:
        self.redactor = redactor
        self._log = log
        self.clock = clock
        self._observers = tuple(observers)
        self._proved = float("-inf")

    def attempt(
        self,
        caller: Caller,
        tool: ToolId,
        arguments: Mapping[str, Any],
        *,
        revision: str,
        kind: RecordKind = "call",
    ) -> Attempt:
        """Begin one: from here on its time is counted."""
        return Attempt(
            id=new_record_id(self.clock.time()),
            timestamp=self.clock.timestamp(),
            began=self.clock.monotonic(),
            caller=caller,
            tool=ToolId(stored_name(tool.server, self.redactor), stored_name(tool.tool, self.redactor)),
            arguments=stored(arguments, self.redactor),
            revision=revision,
            kind=kind,
        )

    async def intend(self, attempt: Attempt, *, changes: bool) -> None:
        """Put it on disk before it happens. What changes nothing may go without, while the log has just proved itself.

        Raises NotRecorded.
        """
        if not changes and self.clock.monotonic() - self._proved < _FRESH:
            return
        caller = attempt.caller
        await self._log.begin(
            Intent(
                id=attempt.id,
                timestamp=attempt.timestamp,
                squad_member_id=caller.member,
                role=stored_name(caller.role, self.redactor),
                server=attempt.tool.server,
                tool=attempt.tool.tool,
                arguments=attempt.arguments,
                origin=caller.origin,
                revision=attempt.revision,
                kind=attempt.kind,
            )
        )
        self._proved = self.clock.monotonic()

    async def refused(self, attempt: Attempt, error: SquidbotError) -> None:
        """Record that we said no, and why; `error` then carries the record's id. Raises NotRecorded."""
        outcome: Outcome = "limited" if isinstance(error, RateLimited) else "refused"
        await self._close(attempt, outcome=outcome, result=None, message=str(error))
        error.record = attempt.id

    async def answered(self, attempt: Attempt, result: ToolResult) -> ToolResult:
        """Record what came of it; gives it back without any secret of the settings. Raises NotRecorded."""
        value = text_of(result.content) if result.raw is None else result.raw
        kept, message, given = await aside(partial(self._looked_through, result), value)
        await self._close(attempt, outcome=outcome_of(result), result=kept, message=message)
        return given

    def _looked_through(self, result: ToolResult) -> tuple[str, str | None, ToolResult]:
        message = result.text if result.is_error else None
        return stored_result(result, self.redactor), message, without_secrets(result, self.redactor)

    async def done(self, attempt: Attempt, result: Any) -> None:
        """Record that something other than a call went well. Raises NotRecorded."""
        kept = await aside(partial(stored, result, self.redactor), result)
        await self._close(attempt, outcome="ok", result=kept, message=None)

    async def failed(self, attempt: Attempt, message: str, *, outcome: Outcome) -> None:
        """Record that it came to nothing, also when whoever asked was cancelled. Raises NotRecorded."""
        with anyio.CancelScope(shield=True):
            await self._close(attempt, outcome=outcome, result=None, message=message)

    async def _close(self, attempt: Attempt, *, outcome: Outcome, result: str | None, message: str | None) -> None:
        record = self.record(attempt, outcome=outcome, result=result, message=message)
        try:
            # Handed over at once: should whoever waits be cancelled now, it is written down all the same.
            await self._log.close(record)
        except anyio.get_cancelled_exc_class():
            self._told(record)
            raise
        self._proved = self.clock.monotonic()
        self._told(record)

    def _told(self, record: ToolExecution) -> None:
        for observer in self._observers:
            observer.observe(record)

    def record(
        self, attempt: Attempt, *, outcome: Outcome, result: str | None = None, message: str | None = None
    ) -> ToolExecution:
        """The record that an attempt ends with."""
        caller = attempt.caller
        return ToolExecution(
            id=attempt.id,
            timestamp=attempt.timestamp,
            squad_member_id=caller.member,
            role=stored_name(caller.role, self.redactor),
            server=attempt.tool.server,
            tool=attempt.tool.tool,
            arguments=attempt.arguments,
            result=result,
            success=outcome == "ok",
            error_message=None if message is None else stored_message(message, self.redactor),
            origin=caller.origin,
            outcome=outcome,
            duration=round(self.clock.monotonic() - attempt.began, 6),
            revision=attempt.revision,
            kind=attempt.kind,
        )
