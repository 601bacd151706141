"""Keeps the few processes in which schemas are checked: started when needed, used again, put away when they fail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from squidbot.adapters.schemas.process import Worker, WorkerLost

_START_UP = 5.0
_REST = 30.0
"""Seconds in which no worker is started after one could not be: to find that out may have taken all of `_START_UP`."""


class NoWorker(Exception):
    """There is no worker to be had; the text says why."""


class Workers:
    """At most `most` workers, each lent to one check at a time."""

    def __init__(self, most: int = 2) -> None:
        self._places = anyio.Semaphore(most)
        self._idle: list[Worker] = []
        self._rest_until = float("-inf")
        self._rest_reason = ""

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Worker]:
        """A worker that is ready; one with which anything goes wrong does not come back. Raises NoWorker."""
        async with self._places:
            idle = self._idle
            worker = await self._ready_worker()
            try:
                yield worker
            except BaseException:
                # It may still be at it, and its answer would be taken for that to the next request.
                await worker.stop()
                raise
            if idle is self._idle:
                idle.append(worker)
            else:  # closed in the meantime
                await worker.stop()

    async def aclose(self) -> None:
        """End all workers: idle ones now, lent ones when they come back. A later check starts a new one."""
        idle, self._idle = self._idle, []
        for worker in idle:
            await worker.stop()

    async def _ready_worker(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            await worker.stop()
        if anyio.current_time() < self._rest_until:
            raise NoWorker(self._rest_reason)
        try:
            return await self._started()
        except (WorkerLost, TimeoutError, RuntimeError, OSError) as error:  # the last two: no thread, no process
            self._rest_until = anyio.current_time() + _REST
            self._rest_reason = str(error) or f"was not ready within {_START_UP:g} s"
            raise NoWorker(self._rest_reason) from None

    async def _started(self) -> Worker:
        worker = await anyio.to_thread.run_sync(Worker.start)
        try:
            with anyio.fail_after(_START_UP):
                await worker.ready()
        except BaseException:
            await worker.stop()
            raise
        return worker
