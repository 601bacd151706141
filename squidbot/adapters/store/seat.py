"""A gateway's place at a database: several that each counted calls for themselves would let through several times the limits."""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

import anyio
from anyio import to_thread

from squidbot.adapters.store.database import Database
from squidbot.adapters.store.failures import not_recorded
from squidbot.core.domain.errors import ConfigError

_PATIENCE = 3.0
"""Seconds in which one that has just been killed is found to be gone."""
_BEAT = 0.1


class Seat:
    """Held from entering to leaving, however the process ends."""

    def __init__(self, database: Database, *, alone: bool) -> None:
        self._database = database
        self._alone = alone
        self._held = ExitStack()

    async def __aenter__(self) -> Self:
        """Raises ConfigError if another gateway is there that does not count with this one, NotRecorded."""
        deadline = anyio.current_time() + _PATIENCE
        while not await to_thread.run_sync(self._take):
            if anyio.current_time() > deadline:
                raise self._refusal()
            await anyio.sleep(_BEAT)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._held.close)

    def _take(self) -> bool:
        with ExitStack() as stack:
            try:
                taken = stack.enter_context(self._database.seat(alone=self._alone))
            except Exception as error:
                raise not_recorded(error, place=self._database.place) from error
            if taken:
                self._held = stack.pop_all()
        return taken

    def _refusal(self) -> ConfigError:
        there = f"another gateway keeps its record in {self._database.place}"
        if self._alone:
            return ConfigError(
                f"{there}, and each would count calls for itself: twice the limits would be let through",
                hint='They count together in Redis: add "redis": "redis://127.0.0.1:6379/0" to the settings of both.',
            )
        return ConfigError(
            f"{there} and counts calls for itself: more than the limits would be let through",
            hint="Add the same 'redis' to its settings and start it again, or end it.",
        )
