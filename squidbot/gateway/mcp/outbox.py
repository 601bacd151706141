"""What waits to go out on one stream: whoever puts something in never waits, and what nobody reads does not pile up."""

from collections import deque
from collections.abc import Sequence

import anyio

_MOST = 1_000
_LARGEST = 16 * 2**20


class Outbox:
    """Bounded in number and bytes."""

    def __init__(self) -> None:
        self._events: deque[bytes] = deque()
        self._bytes = 0
        self._changed = anyio.Event()
        self.is_closed = False

    def put(self, event: bytes) -> bool:
        """Whether there was room."""
        if self.is_closed or len(self._events) >= _MOST or self._bytes + len(event) > _LARGEST:
            return False
        self._events.append(event)
        self._bytes += len(event)
        self._changed.set()
        return True

    def close(self) -> None:
        """Nothing more comes; what is there can still be taken."""
        self.is_closed = True
        self._changed.set()

    async def take(self, patience: float) -> Sequence[bytes] | None:
        """What is there, empty if nothing came within `patience` seconds; None at the end."""
        if not self._events and not self.is_closed:
            with anyio.move_on_after(patience):
                await self._changed.wait()
        if not self._events and self.is_closed:
            return None
        taken = tuple(self._events)
        self._events.clear()
        self._bytes = 0
        if not self.is_closed:
            self._changed = anyio.Event()
        return taken
