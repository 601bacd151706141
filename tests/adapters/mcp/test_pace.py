"""When a lost server is tried again: soon, then ever later, and at all times within bounds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.adapters.mcp.pace import CAP, LONGEST_WAIT, SLOW, STEADY, Pace


def _after(failures: int, *, retries: int) -> Pace:
    pace = Pace(retries)
    for _ in range(failures):
        pace.failed()
    return pace


@pytest.mark.requirement("B-08")
@settings(deadline=None)
@given(st.integers(min_value=1, max_value=3_000), st.integers(min_value=0, max_value=1_000_000))
def test_every_wait_is_some_time_and_never_long(failures: int, retries: int) -> None:
    """A server that was away for a month must still be found again within a minute or so of its return."""
    pace = Pace(retries)
    pace.failures = failures
    assert 0 < pace.wait() <= max(SLOW, CAP) * 1.25
    assert pace.exhausted == (failures > retries)


@pytest.mark.requirement("B-08")
def test_the_first_attempts_come_soon_and_later_ones_later() -> None:
    """A restart takes a second, an outage an hour."""
    waits = [_after(failures, retries=100).wait() for failures in (1, 3, 5, 9)]
    assert waits == sorted(waits)
    assert waits[0] < 1


def test_a_server_with_little_hope_is_tried_slowly() -> None:
    """Patience ends, hope does not."""
    assert _after(1, retries=3).wait(slow=True) >= SLOW * 0.8


def test_a_connection_that_was_good_for_a_while_starts_from_the_beginning() -> None:
    """A server that fails once a day is no failing server."""
    pace = _after(10, retries=3)
    pace.failed(lasted=STEADY)
    assert (pace.failures, pace.exhausted) == (1, False)
    pace = _after(10, retries=3)
    pace.failed(proved=True)
    assert (pace.failures, pace.exhausted) == (1, False)


@settings(deadline=None)
@given(st.floats(allow_nan=False))
def test_a_server_that_says_when_to_come_back_is_heeded_within_reason(seconds: float) -> None:
    """Retry-After is a wish, not an order to wait for a year."""
    assert 0 <= _after(1, retries=3).wait(retry_after=seconds) <= LONGEST_WAIT
    assert _after(1, retries=3).wait(retry_after=7) == 7
