"""Randomness for ids that nobody can guess, taken from the system many at a time: asking it takes longer than all the rest."""

import os

_AT_A_TIME = 4096


class Chance:
    """A supply of random bytes; none is given twice, not to a child that a fork makes either."""

    def __init__(self) -> None:
        self._supply = b""
        self._at = 0
        os.register_at_fork(after_in_child=self._forget)

    def bytes(self, count: int) -> bytes:
        """So many of them."""
        end = self._at + count
        if end > len(self._supply):
            self._supply, self._at, end = os.urandom(max(_AT_A_TIME, count)), 0, count
        taken = self._supply[self._at : end]
        self._at = end
        return taken

    def _forget(self) -> None:
        self._supply = b""


_CHANCE = Chance()
random_bytes = _CHANCE.bytes
