"""How often, and how many at a time: limits as values, and the arithmetic of a bucket that fills with time.

A bucket is one number, the time at which it would be full again (the generic cell rate algorithm): a call moves that
time on by the interval between two calls, and is refused when it would lie more than a burst ahead. So in any stretch
of t seconds no more than burst + rate * t calls pass.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from squidbot.core.domain.callers import OPERATOR
from squidbot.core.domain.errors import RateLimited
from squidbot.core.domain.tools import ToolId

_RATE = re.compile(r"([1-9][0-9]*)/([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS = (("a minute", 60.0), ("an hour", 3600.0), ("a day", 86400.0))

OnFailure: TypeAlias = Literal["open", "closed"]
"""What becomes of calls while the count cannot be reached: they pass, or they are refused."""

BUSY_WAIT = 1.0
"""Seconds to wait for a place: when a running call ends nobody knows, and a second is soon enough to ask again."""
ROUNDING = 0.01
"""Which part of a call may be missing: sums of fractions are not exact, and nobody is refused for their last digit."""


@dataclass(frozen=True, slots=True)
class Limit:
    """For whom (globs) and how much. Each role has a bucket of its own; the tools a limit matches share it."""

    role: str = "*"
    server: str = "*"
    tool: str = "*"
    rate: float | None = None
    """Calls a second, on average."""
    burst: int = 1
    """Calls that may come at once after a rest."""
    concurrency: int | None = None
    on_failure: OnFailure | None = None
    """What to do when the count cannot be reached; None refuses what changes things, and lets the rest pass."""

    def concerns(self, role: str, tool: ToolId) -> bool:
        return role != OPERATOR and (
            fnmatchcase(role, self.role) and fnmatchcase(tool.server, self.server) and fnmatchcase(tool.tool, self.tool)
        )

    @property
    def key(self) -> str:
        """What tells this limit from others, wherever its count is kept."""
        return "\0".join((self.role, self.server, self.tool, repr(self.rate), str(self.burst), str(self.concurrency)))

    @property
    def covers_all_tools(self) -> bool:
        return (self.server, self.tool) == ("*", "*")

    @property
    def interval(self) -> float:
        """Seconds between two calls at the full rate; 0 if the rate is not limited."""
        return 1 / self.rate if self.rate else 0.0

    def passes_unreachable(self, *, changes: bool) -> bool:
        """Whether a call passes while the count cannot be reached."""
        return not changes if self.on_failure is None else self.on_failure == "open"


DEFAULT_LIMIT = Limit(rate=50.0, burst=500, concurrency=64)
"""What every role has unless the settings give it another: 3,000 calls a minute, 500 at once, 64 side by side."""


def rate_of(text: str) -> float:
    """Calls a second of a rate such as `3000/m`. Raises ValueError."""
    found = _RATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no rate: a number, a slash, and one of s, m, h, d, as in 3000/m")
    return int(found[1]) / _SECONDS[found[2]]


def limits_of(role: str, given: Sequence[Limit]) -> list[Limit]:
    """The limits that can concern `role`: those given, and of the default what none of them says for all tools.

    A given limit for all tools of the role takes the default's place; where it leaves the rate or the concurrency
    open, the default still holds that one. The operator has none.
    """
    if role == OPERATOR:
        return []
    own = [limit for limit in given if fnmatchcase(role, limit.role)]
    general = [limit for limit in own if limit.covers_all_tools]
    default = replace(
        DEFAULT_LIMIT,
        rate=None if any(limit.rate for limit in general) else DEFAULT_LIMIT.rate,
        concurrency=None if any(limit.concurrency for limit in general) else DEFAULT_LIMIT.concurrency,
    )
    return own if default.rate is None and default.concurrency is None else [default, *own]


class Bucket:
    """What one role has left of one limit; the time comes in as a number."""

    __slots__ = ("_ahead", "_interval", "full_at", "limit", "running")

    def __init__(self, limit: Limit, now: float) -> None:
        self.limit = limit
        self.running = 0
        self.full_at = now
        """When there would be a whole burst again."""
        self._interval = limit.interval
        self._ahead = (limit.burst - 1 + ROUNDING) * limit.interval

    def wait(self, now: float) -> float:
        """Seconds until there is a call to give; 0 if there is one now."""
        behind = self.full_at - now
        return 0.0 if behind <= self._ahead else behind - self._ahead + ROUNDING * self._interval

    @property
    def busy(self) -> bool:
        """Whether as many calls run side by side as may."""
        most = self.limit.concurrency
        return most is not None and self.running >= most

    def take(self, now: float) -> None:
        """Count a call that passes, and that runs from now on."""
        self.full_at = max(self.full_at, now) + self._interval
        self.running += 1


def refusal(role: str, limit: Limit, wait: float, *, busy: bool = False) -> RateLimited:
    """The error for a call too many: which limit says no, and when to try again."""
    error = RateLimited(_words(role, limit, wait, busy=busy), retry_after=wait)
    error.hint = "Limits stand in the settings under 'limits'."
    return error


def _words(role: str, limit: Limit, wait: float, *, busy: bool) -> str:
    of = "" if limit.covers_all_tools else f" of {limit.server}/{limit.tool}"
    if busy:
        return (
            f"role {role!r} has {limit.concurrency} calls{of} running, which is as many as it may have at a time; "
            f"try again when one has ended, in about {wait:g} s"
        )
    return f"role {role!r} may make {_rate_words(limit)}{of}; try again in {_seconds(wait)}"


def _seconds(wait: float) -> str:
    return f"{wait:.3g} s" if wait < 100 else f"{wait:,.0f} s"


def _rate_words(limit: Limit) -> str:
    rate = limit.rate or 0.0
    unit, seconds = next(((unit, seconds) for unit, seconds in _UNITS if rate * seconds > 0.999), _UNITS[-1])
    count = f"{rate * seconds:.6g}"
    return f"{count} call{'' if count == '1' else 's'} {unit} and {limit.burst} at once"
