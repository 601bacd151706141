"""Percentiles from counts are where those of the times themselves are, to within a class."""

import math
from bisect import bisect_left
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.latency import BOUNDS, percentile

pytestmark = pytest.mark.requirement("E-10")


@given(
    st.lists(st.floats(min_value=0.0005, max_value=500), min_size=1),
    st.sampled_from((0.5, 0.9, 0.99)),
)
def test_a_percentile_is_in_the_class_of_the_true_one(times: list[float], part: float) -> None:
    """People compare two charts by these numbers: they may be rough, but not wrong."""
    counts = Counter(bisect_left(BOUNDS, time) for time in times)
    true = sorted(times)[max(math.ceil(part * len(times)), 1) - 1]
    found = percentile(counts, part)
    assert found is not None
    assert true / (4 / 3 + 1e-9) <= found <= true * (4 / 3 + 1e-9)


def test_nothing_has_no_percentile_and_what_is_too_long_has_the_longest() -> None:
    """A call of an hour must not break the chart."""
    assert percentile({}, 0.5) is None
    assert percentile({len(BOUNDS): 3}, 0.5) == BOUNDS[-1]
