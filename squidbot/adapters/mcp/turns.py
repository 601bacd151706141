"""Gives the event loop to others now and then, in work that never has to wait for anything."""

import asyncio
import time

_TURN = 0.01
"""Seconds that one task may keep the loop to itself; to yield at every step would make each step wait for everybody."""


class Turns:
    """Awaited between steps; yields once a turn is over."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def pause(self) -> None:
        """Let others run, if this turn was long enough."""
        if time.perf_counter() - self._began > _TURN:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
