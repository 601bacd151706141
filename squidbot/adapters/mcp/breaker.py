"""Spares a server that fails call after call: it is left alone for a while, then tried with one."""

LIMIT = 5
"""Failures in a row after which calls are refused at once."""
REST = 10.0
"""Seconds between two tries while they are."""


class Breaker:
    """Opens after `LIMIT` failures in a row, lets one call through every `REST` seconds, closes when one succeeds."""

    def __init__(self) -> None:
        self.failures = 0
        self.last = ""
        self._next_try = 0.0
        self._life = 0

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
        if self.failures >= LIMIT:
            self._next_try = now + REST

    def succeeded(self) -> None:
        """The server works, or at least it answers."""
        self.failures = 0
