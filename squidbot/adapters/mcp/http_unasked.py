"""What a server says unasked over streamable HTTP, bounded in rate and number over all of its streams.

The other transports have `inbound.py` for this. Here the SDK's dispatcher takes whatever comes, and answers a
server's requests by one POST after the other, with our own calls behind them: so too much must not reach it.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from loguru import logger

from squidbot.adapters.mcp.channel import Bounds

_AT_ONCE = 32
"""Requests of a server that wait for their answer at the same time; more are dropped."""
_LONGEST_METHOD = 1_000
_FORGOTTEN = 60.0
"""Seconds after which a request no longer counts as waiting: it may never be answered."""
_NEWS = 0.5
"""Seconds for which one word of a changed list stands for all that follow, unless the list was asked for meanwhile."""
_LEAST = 10
"""While a flood lasts less is let through each second, down to this part of the rate: here each one is dear."""
_REMIND = 60.0
"""Seconds between two warnings of the same kind."""
_LISTS: Mapping[str, str] = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
    "resources/templates/list": "notifications/resources/list_changed",
}
_CHANGES = frozenset(_LISTS.values())


class Unasked:
    """One server's requests and notifications, and which of them may go on."""

    def __init__(self, *, server: str, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self.dropped: Counter[str] = Counter()
        self._server = server
        self._rate = bounds.notifications
        self._volume = bounds.words
        self._most_asked = bounds.bytes
        self._clock = clock
        self._allowed = bounds.notifications
        self._began, self._seen, self._told = 0.0, 0, 0
        self._waiting: dict[str, tuple[float, int]] = {}
        self._changed: dict[str, float] = {}
        self._warned: dict[str, float] = {}

    def admits(self, message: Mapping[str, Any], size: int = 0) -> bool:
        """Whether a valid message with a method, which has `size` bytes, may go on; if not it is counted."""
        method = message["method"]
        if len(method) > _LONGEST_METHOD:
            self.odd("invalid", "asks or tells by a method of more than {} characters", _LONGEST_METHOD)
            return False
        if "id" in message:
            return self._admits_request(str(message["id"]), size)
        if method in _CHANGES:
            return self._admits_change(method)
        if method == "notifications/cancelled":
            self.answered((message.get("params") or {}).get("requestId"))
        return self._admits_notification(size)

    def listed(self, method: str) -> None:
        """We ask for a list: from now on another word of its changing is news."""
        self._changed.pop(_LISTS.get(method, ""), None)

    def answered(self, request_id: Any) -> None:
        """A request of the server's has its answer, or needs none any more."""
        self._waiting.pop(str(request_id), None)

    def odd(self, kind: str, message: str, detail: object = None) -> None:
        """Count what is left out, and speak of it at most once a minute."""
        self.dropped[kind] += 1
        now = self._clock()
        if now - self._warned.get(kind, -_REMIND) >= _REMIND:
            self._warned[kind] = now
            logger.bind(server=self._server).warning(f"server {self._server!r} {message}", detail)

    def _admits_request(self, request_id: str, size: int) -> bool:
        now = self._clock()
        if len(self._waiting) >= _AT_ONCE:
            self._waiting = {known: asked for known, asked in self._waiting.items() if now - asked[0] < _FORGOTTEN}
        too_many = len(self._waiting) >= _AT_ONCE or request_id in self._waiting
        if too_many or (self._waiting and self._asked + size > self._most_asked):
            self.odd("requests", "asks more than {} things at once; the rest is dropped", _AT_ONCE)
            return False
        self._waiting[request_id] = now, size
        return True

    @property
    def _asked(self) -> int:
        """Bytes of the questions that wait for their answer."""
        return sum(size for _, size in self._waiting.values())

    def _admits_change(self, method: str) -> bool:
        now = self._clock()
        if now - self._changed.get(method, -_NEWS) < _NEWS:
            self.dropped["changes"] += 1  # nothing is lost: whoever asks for the list now gets this change as well
            return False
        self._changed[method] = now
        return True

    def _admits_notification(self, size: int) -> bool:
        now = self._clock()
        if now - self._began >= 1.0:
            flooded = self._seen > self._allowed
            self._allowed = max(self._allowed // 2, self._rate // _LEAST) if flooded else self._rate
            self._began, self._seen, self._told = now, 0, 0
        self._seen += 1
        if self._seen > self._allowed:
            self.odd("notifications", "sends more than {} notifications a second; the rest is dropped", self._rate)
            return False
        if self._told + size > self._volume:
            self.odd("notifications", "tells more than {} bytes a second; the rest is dropped", self._volume)
            return False
        self._told += size
        return True
