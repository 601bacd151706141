"""Rate limits of one process, counted in memory."""

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from squidbot.core.domain.limits import BUSY_WAIT, Bucket, Limit, limits_of, refusal
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import Clock

_MOST_MATCHES: Final = 10_000
"""For how many pairs of role and tool it is remembered which limits concern them."""


class Places:
    """The places that one call holds; given back once, however often it is asked."""

    __slots__ = ("_buckets",)

    def __init__(self, buckets: Sequence[Bucket]) -> None:
        self._buckets = buckets

    async def release(self) -> None:
        buckets, self._buckets = self._buckets, ()
        for bucket in buckets:
            bucket.running -= 1


class MemoryRateLimiter:
    """Satisfies `RateLimiter`: exact, because between looking and taking it never waits.

    There are as many buckets as roles times limits: roles come from the settings, not from callers.
    """

    def __init__(self, limits: Sequence[Limit], clock: Clock) -> None:
        self._limits = tuple(limits)
        self._clock = clock
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._matches: dict[tuple[str, ToolId], tuple[Bucket, ...]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def replace(self, limits: Sequence[Limit]) -> None:
        """Take other limits; of those that stay as they are, the count goes on."""
        self._limits = tuple(limits)
        self._matches.clear()
        held = {(limit.key, role) for _, role in self._buckets for limit in limits_of(role, self._limits)}
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if key in held}

    async def acquire(self, role: str, tool: ToolId, *, changes: bool = True) -> Places:
        """Take one call from every limit that concerns it, or from none. Raises RateLimited."""
        del changes  # a count in memory can always be reached
        now = self._clock.monotonic()
        buckets = self._matching(role, tool, now)
        longest, refusing, full = 0.0, None, False
        for bucket in buckets:
            if (wait := bucket.wait(now)) > longest:
                longest, refusing, full = wait, bucket.limit, False
            if longest < BUSY_WAIT and bucket.busy:
                longest, refusing, full = BUSY_WAIT, bucket.limit, True
        if refusing is not None:
            raise refusal(role, refusing, longest, busy=full)
        for bucket in buckets:
            bucket.take(now)
        return Places(buckets)

    def _matching(self, role: str, tool: ToolId, now: float) -> tuple[Bucket, ...]:
        """The buckets that such a call takes from."""
        known = self._matches.get((role, tool))
        if known is not None:
            return known
        if len(self._matches) >= _MOST_MATCHES:
            self._matches.clear()
        found = []
        for limit in limits_of(role, self._limits):
            if limit.concerns(role, tool):
                key = (limit.key, role)
                bucket = self._buckets.get(key)
                if bucket is None:
                    bucket = self._buckets[key] = Bucket(limit, now)
                found.append(bucket)
        matches = self._matches[role, tool] = tuple(dict.fromkeys(found))
        return matches
