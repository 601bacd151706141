"""Percentiles from counts: how many calls took how long, in classes that each reach a third further than the last."""

import math
from collections.abc import Mapping

_FIRST = 0.000_25
_STEP = 4 / 3
BOUNDS: tuple[float, ...] = tuple(_FIRST * _STEP**place for place in range(52))
"""The upper end of each class, in seconds: a quarter of a millisecond to ten minutes. Longer calls are one class more."""


def percentile(counts: Mapping[int, int], part: float) -> float | None:
    """The time within which that part of the calls ended, to within a class; `counts` are by the number of the class."""
    total = sum(counts.values())
    if not total:
        return None
    wanted, seen = max(math.ceil(part * total), 1), 0
    for place in sorted(counts):
        if seen + counts[place] >= wanted:
            return _within(place, (wanted - seen) / counts[place])
        seen += counts[place]
    return BOUNDS[-1]  # not reached: the counts add up to the total


def _within(place: int, part: float) -> float:
    """A point inside a class, where its calls are taken to be spread evenly."""
    if place >= len(BOUNDS):
        return BOUNDS[-1]
    low = BOUNDS[place - 1] if place else 0.0
    return low + (BOUNDS[place] - low) * part
