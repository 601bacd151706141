"""Rate limits that the commands of one machine count together, in a small file of the state folder."""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loguru import logger

from squidbot.adapters.limits.memory import MemoryRateLimiter, Places
from squidbot.core.domain.limits import Limit
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import Clock

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_LARGEST: Final = 1_000_000


class SharedRateLimiter(MemoryRateLimiter):
    """Satisfies `RateLimiter`: a command that makes one call and ends finds what others took before it.

    Rates hold over all commands on one state folder, since the monotonic clock is the machine's; how many calls run side by
    side is counted in each process alone.
    """

    def __init__(self, limits: Sequence[Limit], clock: Clock, *, file: Path) -> None:
        super().__init__(limits, clock)
        self._file = file
        self._warned = False

    async def acquire(self, role: str, tool: ToolId, *, changes: bool = True) -> Places:
        """Take one call from every limit that concerns it, or from none. Raises RateLimited."""
        now = self._clock.monotonic()
        buckets = {json.dumps([bucket.limit.key, role]): bucket for bucket in self._matching(role, tool, now)}
        with self._held() as full_at:
            for name, bucket in buckets.items():
                bucket.full_at = max(bucket.full_at, full_at.get(name, now))
            places = await super().acquire(role, tool, changes=changes)  # never waits
            full_at |= {name: bucket.full_at for name, bucket in buckets.items()}
            for name in [name for name, until in full_at.items() if until <= now]:
                del full_at[name]
        return places

    @contextmanager
    def _held(self) -> Iterator[dict[str, float]]:
        """What all have taken, while nobody else takes; what is in it at the end is kept, unless something is raised."""
        try:
            number = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._warn(error)
            yield {}
            return
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            full_at = _read(number)
            yield full_at
            text = json.dumps({"boot": _boot(), "full_at": full_at}).encode()
            try:
                os.ftruncate(number, os.pwrite(number, text, 0))
            except OSError as error:
                self._warn(error)
        finally:
            os.close(number)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            logger.warning("{} cannot be used ({}): this process counts for itself", self._file, error.strerror)
        self._warned = True


def _read(number: int) -> dict[str, float]:
    """What the file has, if it is of this start of the machine; nothing if it is damaged."""
    try:
        found = json.loads(os.pread(number, _LARGEST, 0))
        if found["boot"] == _boot():
            return {str(name): float(until) for name, until in found["full_at"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, OSError):
        pass
    return {}


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""
