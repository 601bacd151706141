"""A server that fails call after call is left alone for a while, then tried with one call."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.adapters.mcp.breaker import LIMIT, REST, Breaker


def _failing(times: int, *, now: float = 0.0, life: int = 0) -> Breaker:
    breaker = Breaker()
    for _ in range(times):
        breaker.failed("no answer", now, life=life)
    return breaker


def test_a_few_failures_change_nothing_and_one_success_forgives_them() -> None:
    """Everybody fails now and then."""
    breaker = _failing(LIMIT - 1)
    assert breaker.wait(0.0, life=0) == 0
    breaker.succeeded()
    breaker.failed("again", 0.0, life=0)
    assert breaker.wait(0.0, life=0) == 0


def test_after_as_many_as_the_limit_calls_wait_and_then_one_passes() -> None:
    """A server that is down must not cost every caller a deadline, and must be found again."""
    breaker = _failing(LIMIT)
    assert breaker.wait(1.0, life=0) == REST - 1
    assert breaker.wait(REST, life=0) == 0, "the one that tries"
    assert breaker.wait(REST, life=0) == REST, "all others wait for it"
    breaker.succeeded()
    assert breaker.wait(REST, life=0) == 0


def test_a_server_that_was_started_anew_is_tried_at_once() -> None:
    """Its failures were its former life's."""
    breaker = _failing(LIMIT)
    assert (breaker.is_open(life=0), breaker.is_open(life=1)) == (True, False)
    assert breaker.wait(1.0, life=1) == 0


@settings(deadline=None)
@given(st.lists(st.floats(min_value=0, max_value=100), min_size=1, max_size=50).map(sorted))
def test_however_many_ask_at_most_one_passes_in_each_rest(times: list[float]) -> None:
    """Half-open means one."""
    breaker = _failing(LIMIT)
    passed = [now for now in times if breaker.wait(now, life=0) == 0]
    assert all(later >= earlier + REST for earlier, later in pairwise(passed))
    assert all(now >= REST for now in passed)
