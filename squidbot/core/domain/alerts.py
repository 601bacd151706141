"""What is unusual in the stream of records, told by four rules over sliding windows."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from squidbot.core.domain.audit import ToolExecution
from squidbot.core.domain.callers import OPERATOR

AlertRule: TypeAlias = Literal["burst", "refusals", "first_use", "error_rate"]


@dataclass(frozen=True, slots=True)
class Alert:
    """Something unusual: which rule saw it, in whom, and what it saw."""

    id: str
    timestamp: str
    rule: AlertRule
    role: str | None
    server: str | None
    tool: str | None
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlertThresholds:
    """From when on something is unusual; None switches a rule off."""

    burst: tuple[int, float] | None = (300, 60.0)
    """Calls of one role, within seconds."""
    refusals: tuple[int, float] | None = (5, 300.0)
    """Refusals of one role, within seconds."""
    first_use: bool = True
    error_rate: tuple[float, int, float] | None = (0.5, 20, 300.0)
    """Which part of a server's calls, of at least so many, within seconds."""
    cool_down: float = 300.0
    """Seconds in which the same alert is not raised again."""


@dataclass(frozen=True, slots=True)
class Unusual:
    """What a rule saw, before it is an alert with an id and a date."""

    rule: AlertRule
    role: str | None
    server: str | None
    tool: str | None
    message: str
    details: Mapping[str, Any]

    @property
    def key(self) -> tuple[str | None, ...]:
        return (self.rule, self.role, self.server, self.tool)


_MOST_KEYS = 10_000
"""Roles and servers that are watched at a time; names that callers make up must not fill the memory."""


_NOTHING = (None, None, None, None)
"""What the four rules nearly always say."""


class AlertWatch:
    """Sees records one after the other; time comes in as seconds that never jump."""

    def __init__(self, thresholds: AlertThresholds) -> None:
        self._thresholds = thresholds
        self._calls: dict[str, deque[float]] = {}
        self._refusals: dict[str, deque[float]] = {}
        self._ends: dict[str, _Ends] = {}
        self._used: set[tuple[str, str, str]] = set()
        self._raised: dict[tuple[str | None, ...], float] = {}

    def replace(self, thresholds: AlertThresholds) -> None:
        """Watch by other thresholds; what was seen is not forgotten."""
        self._thresholds = thresholds

    def know_uses(self, uses: Iterable[tuple[str, str, str]]) -> None:
        """Which role has used which tool before."""
        self._used.update(uses)

    def see(self, record: ToolExecution, now: float) -> list[Unusual]:
        """What is unusual about this record and those before it; the same thing only once in a while."""
        if record.kind != "call":
            return []
        looks = (self._burst(record, now), self._refusal(record, now), self._first(record), self._errors(record, now))
        if looks == _NOTHING:
            return []
        fresh = [
            item
            for item in looks
            if item is not None and now - self._raised.get(item.key, float("-inf")) >= self._thresholds.cool_down
        ]
        for item in fresh:
            self._raised[item.key] = now
        if len(self._raised) > _MOST_KEYS:
            self._raised = dict(list(self._raised.items())[_MOST_KEYS // 2 :])
        return fresh

    def _burst(self, record: ToolExecution, now: float) -> Unusual | None:
        if self._thresholds.burst is None:
            return None
        most, seconds = self._thresholds.burst
        count = _counted(self._calls, record.role, now, seconds, most + 1)
        if count > most:
            message = f"role {record.role!r} made more than {most} calls within {seconds:g} s"
            return Unusual("burst", record.role, None, None, message, {"calls": count, "seconds": seconds})
        return None

    def _refusal(self, record: ToolExecution, now: float) -> Unusual | None:
        if self._thresholds.refusals is None or record.outcome != "refused":
            return None
        most, seconds = self._thresholds.refusals
        count = _counted(self._refusals, record.role, now, seconds, most)
        if count >= most:
            what = f"{record.server}/{record.tool}" if record.server else record.tool
            message = f"role {record.role!r} was refused {count} times within {seconds:g} s, the last time {what!r}"
            return Unusual("refusals", record.role, None, None, message, {"refusals": count, "seconds": seconds})
        return None

    def _first(self, record: ToolExecution) -> Unusual | None:
        if not self._thresholds.first_use or record.role == OPERATOR or record.outcome in ("refused", "limited"):
            return None
        use = (record.role, record.server, record.tool)
        if use not in self._used:
            self._used.add(use)
            message = f"role {record.role!r} used {record.tool!r} of server {record.server!r} for the first time"
            return Unusual("first_use", *use, message, {"record": record.id})
        return None

    def _errors(self, record: ToolExecution, now: float) -> Unusual | None:
        if self._thresholds.error_rate is None or not record.server or record.outcome in ("refused", "limited"):
            return None
        rate, least, seconds = self._thresholds.error_rate
        if len(self._ends) > _MOST_KEYS:
            self._ends.clear()
        ends = self._ends.get(record.server)
        if ends is None:
            ends = self._ends[record.server] = _Ends(most=max(10 * least, 1_000))
        calls, failed = ends.after(now, seconds, failed=record.outcome in ("tool_error", "server_error", "timeout"))
        if calls >= least and failed >= rate * calls:
            message = f"{failed} of {calls} calls to server {record.server!r} failed within {seconds:g} s"
            return Unusual("error_rate", None, record.server, None, message, {"failed": failed, "calls": calls})
        return None


class _Ends:
    """How the last calls to a server ended; counted as they come and go, because this is asked at every call."""

    def __init__(self, *, most: int) -> None:
        self._ends: deque[tuple[float, bool]] = deque()
        self._most = most
        self._failed = 0

    def after(self, now: float, seconds: float, *, failed: bool) -> tuple[int, int]:
        """Calls and failures of the last so many seconds, this one included."""
        self._ends.append((now, failed))
        self._failed += failed
        while len(self._ends) > self._most or self._ends[0][0] <= now - seconds:
            self._failed -= self._ends.popleft()[1]
        return len(self._ends), self._failed


def _counted(windows: dict[str, deque[float]], key: str, now: float, seconds: float, most: int) -> int:
    """How many within the window, this one included; never more than `most` are remembered."""
    if len(windows) > _MOST_KEYS:
        windows.clear()
    times = windows.get(key)
    if times is None or times.maxlen != most:
        times = windows[key] = deque(maxlen=most)
    times.append(now)
    while times[0] <= now - seconds:
        times.popleft()
    return len(times)
