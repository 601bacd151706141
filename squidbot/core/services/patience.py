"""Long work on large values, done where nobody else has to wait for it."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import anyio
import anyio.to_thread

from squidbot.core.domain.weight import weight

T = TypeVar("T")

_HEAVY = 4_000
"""Values, or 32 times as many characters: to look through more takes longer than a loop should be kept."""


async def aside(work: Callable[[], T], value: object) -> T:
    """The outcome of `work` on `value`; if there is much of it, from a thread. Cancelled, it still comes to its end."""
    if weight(value, _HEAVY) <= _HEAVY:
        return work()
    with anyio.CancelScope(shield=True), suppress(RuntimeError):  # raised by a machine that has no more threads to give
        return await anyio.to_thread.run_sync(work)
    return work()
