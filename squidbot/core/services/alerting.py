"""Watches every record for what is unusual, and tells whoever wants to know."""

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from squidbot.core.domain.alerts import Alert, AlertThresholds, AlertWatch, Unusual
from squidbot.core.domain.audit import RecordFilter, ToolExecution
from squidbot.core.domain.errors import NotRecorded
from squidbot.core.ports import AlertMemory, AlertSink, Clock
from squidbot.core.services.recording import new_record_id

_WAITING = 1_000
"""Alerts that wait to be sent; more at a time would tell nobody anything."""
_LAST_MOMENTS = 5.0
"""Seconds, at the end, for what still waits."""
_REMEMBERED = 2_000
"""Records of the time before that are looked at, so that several short runs are seen as one."""


class Alerting:
    """Satisfies `CallObserver`. It watches while its context is open; nobody ever waits for it."""

    def __init__(
        self, thresholds: AlertThresholds, *, sinks: Sequence[AlertSink], memory: AlertMemory, clock: Clock
    ) -> None:
        self._watch = AlertWatch(thresholds)
        self._thresholds = thresholds
        self._sinks = tuple(sinks)
        self._memory = memory
        self._clock = clock
        self._send: MemoryObjectSendStream[Unusual] | None = None
        self._stack = AsyncExitStack()
        self.left_out = 0
        """Alerts that could not be told because too many waited."""

    async def __aenter__(self) -> Self:
        with suppress(NotRecorded):  # whoever records will say so; watching then starts with nothing known
            await self._remember()
        self._send, waiting = anyio.create_memory_object_stream[Unusual](_WAITING)
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._tasks.start_soon(self._tell, waiting)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._send is not None:
            self._send.close()
        self._tasks.cancel_scope.deadline = anyio.current_time() + _LAST_MOMENTS
        # An error of whoever is watched is none of ours: passed in here, it would come out wrapped in a group.
        await self._stack.aclose()

    def replace(self, thresholds: AlertThresholds, *, sinks: Sequence[AlertSink]) -> None:
        """Watch by other thresholds, and tell others."""
        self._watch.replace(thresholds)
        self._thresholds, self._sinks = thresholds, tuple(sinks)

    def observe(self, record: ToolExecution) -> None:
        """See one record."""
        for item in self._watch.see(record, self._clock.monotonic()):
            if self._send is None:
                return
            try:
                self._send.send_nowait(item)
            except (anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self.left_out += 1

    async def _tell(self, waiting: MemoryObjectReceiveStream[Unusual]) -> None:
        async with waiting:
            async for item in waiting:
                if await self._is_news(item):
                    alert = self._alert(item)
                    for sink in self._sinks:
                        await sink.send(alert)

    def _alert(self, item: Unusual) -> Alert:
        return Alert(
            id=new_record_id(self._clock.time()),
            timestamp=self._clock.timestamp(),
            rule=item.rule,
            role=item.role,
            server=item.server,
            tool=item.tool,
            message=item.message,
            details=item.details,
        )

    async def _is_news(self, item: Unusual) -> bool:
        """Whether no other process has told it: a first use happens once."""
        if item.rule != "first_use":
            return True
        try:
            return await self._memory.note_first_use(item.role or "", item.server or "", item.tool or "")
        except NotRecorded:
            return True

    async def _remember(self) -> None:
        self._watch.know_uses(await self._memory.first_uses())
        now = self._clock.time()
        spans = [rule[-1] for rule in (self._thresholds.burst, self._thresholds.refusals) if rule]
        longest = max([*spans, self._thresholds.error_rate[-1] if self._thresholds.error_rate else 0.0, 0.0])
        since = datetime.fromtimestamp(now - longest, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        async for record in self._memory.records(RecordFilter(kind="call", since=since), newest=_REMEMBERED):
            age = now - datetime.fromisoformat(record.timestamp).timestamp()
            # What they amounted to was told when they happened.
            self._watch.see(record, self._clock.monotonic() - max(age, 0.0))
