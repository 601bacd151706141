"""Spares a server that fails call after call: it is left alone for a while, then tried with one."""

import time

LIMIT = 5
"""Failures in a row after which calls are refused at once."""
REST = 10.0
"""Seconds between two tries while they are."""


class Breaker:
    """Opens after `LIMIT` failures in a row, lets one call through every `REST` seconds, closes when one succeeds."""

    def __init__(self) -> None:
        self.failures = 0
        self.last = ""
        self.since = 0.0
        """When it opened, in seconds since 1970."""
        self._next_try = 0.0
        self._life = 0

    @property
    def reason(self) -> str:
        """Why calls are refused while it is open."""
        return f"{self.failures} calls in a row failed, the last with: {self.last}"

    def is_open(self, *, life: int) -> bool:
        """Whether calls are refused, but for one now and then."""
        return self.failures >= LIMIT and life == self._life

    def wait(self, now: float, *, life: int) -> float:
        """Seconds for which a call must not pass, 0 if it may; the call that may is the only one for a while.

        `life` counts the server's lives: one that has been started anew is tried at once.
        """
        if self.failures < LIMIT:
            return 0.0
        if now < self._next_try and life == self._life:
            return self._next_try - now
        self._next_try, self._life = now + REST, life
        return 0.0

    def failed(self, reason: str, now: float, *, life: int) -> None:
        """A call came to nothing, and not by its caller's fault."""
        self.failures += 1
        self.last = reason
        self._life = life
        if self.failures == LIMIT:
            self.since = time.time()
        if self.failures >= LIMIT:
            self._next_try = now + REST

    def succeeded(self) -> None:
        """The server works, or at least it answers."""
        self.failures = 0
