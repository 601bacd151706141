"""Takes up the settings anew when their file changes, and knows which are in force and what is wrong with newer ones."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import anyio
from anyio import to_thread

from squidbot.core.domain.errors import ConfigError, NotRecorded
from squidbot.core.domain.views import SettingsReport
from squidbot.core.ports import Clock
from squidbot.core.services.reloading import Reloader

S = TypeVar("S")


class Watched(Protocol):
    """Files, as they were when they were last looked at."""

    def look(self, files: Iterable[Path]) -> None: ...

    def changed(self) -> bool: ...


class SettingsWatch(Generic[S]):
    """Reading happens in a thread, since a file may be on a disk that hangs."""

    def __init__(
        self,
        reloader: Reloader[S],
        *,
        load: Callable[[], S],
        files: Callable[[S], Iterable[Path]],
        watched: Watched,
        file: str | None,
        clock: Clock,
    ) -> None:
        self._reloader = reloader
        self._load = load
        self._files = files
        self._watched = watched
        self._clock = clock
        self._file = file
        self._one_at_a_time = anyio.Lock()
        self.report = SettingsReport(file=file, since=clock.timestamp())
        watched.look(files(reloader.settings))

    async def changed(self) -> bool:
        """Whether a file says something else than the last time. Cheap."""
        return await to_thread.run_sync(self._watched.changed)

    async def reload(self) -> None:
        """Take the settings up, or say why they cannot be. Raises nothing."""
        async with self._one_at_a_time:
            try:
                await self._take_up()
            except NotRecorded as error:
                # No record, no change: the old settings stay, and the next change or SIGHUP tries again.
                self._refused([f"not recorded, not done: {error}"])

    async def _take_up(self) -> None:
        try:
            settings = await to_thread.run_sync(self._load)
        except ConfigError as error:
            await self._reloader.refuse(str(error))
            named = [str(problem) for problem in error.problems if problem.path]
            # A problem without a place is only to be understood with the sentence before it.
            self._refused(named if named and len(named) == len(error.problems) else [str(error)])
            return
        done = await self._reloader.apply(settings)
        # Of files that are watched already it is known what they said when this was read, or something older.
        await to_thread.run_sync(self._watched.look, list(self._files(settings)))
        self.report = SettingsReport(file=self._file, since=self._clock.timestamp(), details=dict(done))

    def _refused(self, problems: list[str]) -> None:
        clean = self._reloader.clean
        self.report = SettingsReport(
            file=self._file, since=self.report.since, ok=False, problems=tuple(clean(problem) for problem in problems)
        )
