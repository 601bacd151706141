"""When to try again: soon at first, then ever later, never in step with others."""

import random

FIRST = 0.5
CAP = 30.0
SLOW = 60.0
"""Seconds between attempts once a server has failed as often as its settings allow."""
LONGEST_WAIT = 60.0
"""The most that a server's own Retry-After is heeded."""
STEADY = 5.0
"""A connection that lasted so long was a good one: the next loss starts from the beginning."""


class Pace:
    """Counts failures in a row and says how long to wait after them."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self.failures = 0

    @property
    def exhausted(self) -> bool:
        """Whether there were more failures in a row than the settings allow."""
        return self.failures > self._retries

    def failed(self, *, lasted: float = 0.0, proved: bool = False) -> None:
        """Count a failure; `lasted` is for how long the connection had been good, `proved` if it had been of use."""
        self.failures = 1 if proved or lasted >= STEADY else self.failures + 1

    def wait(self, *, retry_after: float | None = None, slow: bool = False) -> float:
        """Seconds until the next attempt; `slow` if there is little hope."""
        if retry_after is not None:
            return min(max(retry_after, 0.0), LONGEST_WAIT)
        if slow:
            return SLOW * random.uniform(0.8, 1.2)  # noqa: S311 - jitter is no secret
        # The cap is reached after a few doublings; without an end to them a year of failures would overflow.
        doublings = min(self.failures - 1, 16)
        return min(FIRST * 2.0**doublings, CAP) * random.uniform(0.75, 1.25)  # noqa: S311
