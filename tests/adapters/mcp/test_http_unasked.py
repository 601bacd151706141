"""Too much unasked is left out over HTTP too, and what matters is not."""

from typing import Any

import pytest

from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.http_unasked import Unasked

CHANGED = {"method": "notifications/tools/list_changed"}
PROGRESS = {"method": "notifications/progress"}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def unasked(clock: Clock) -> Unasked:
    return Unasked(server="there", bounds=Bounds(notifications=100), clock=clock)


def passed(unasked: Unasked, message: dict[str, Any], times: int) -> int:
    return sum(unasked.admits(message) for _ in range(times))


def test_notifications_keep_to_the_rate_and_a_flood_that_lasts_to_less(unasked: Unasked, clock: Clock) -> None:
    """Each one costs the SDK a parse, a queue and a task."""
    heard = []
    for clock.now in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
        heard.append(passed(unasked, PROGRESS, 1_000))
    assert heard == [100, 50, 25, 12, 10, 10]
    clock.now = 7.0
    assert passed(unasked, PROGRESS, 5) == 5
    clock.now = 8.0
    assert passed(unasked, PROGRESS, 1_000) == 100
    assert unasked.dropped["notifications"] == 6_000 - 207 + 900


def test_one_word_of_a_change_stands_for_those_that_follow_until_the_list_is_asked_for(
    unasked: Unasked, clock: Clock
) -> None:
    """A change after we looked is never lost, or the tools would stay wrong."""
    assert passed(unasked, CHANGED, 20_000) == 1
    unasked.listed("prompts/list")
    assert passed(unasked, CHANGED, 1) == 0
    unasked.listed("tools/list")
    assert passed(unasked, CHANGED, 20) == 1
    clock.now += 0.5
    assert passed(unasked, CHANGED, 20) == 1
    assert passed(unasked, {"method": "notifications/prompts/list_changed"}, 20) == 1


def test_requests_wait_in_bounded_number_until_they_are_answered_cancelled_or_forgotten(
    unasked: Unasked, clock: Clock
) -> None:
    """One that is never answered must not take a place for ever."""
    assert sum(unasked.admits({"method": "ping", "id": number}) for number in range(100)) == 32
    unasked.answered(0)
    assert unasked.admits({"method": "ping", "id": 200})
    assert not unasked.admits({"method": "ping", "id": 201})
    assert unasked.admits({"method": "notifications/cancelled", "params": {"requestId": "1"}})
    assert unasked.admits({"method": "ping", "id": 201})
    assert not unasked.admits({"method": "ping", "id": 202})
    clock.now += 60
    assert unasked.admits({"method": "ping", "id": 202})
    assert not unasked.admits({"method": "ping", "id": 202})


def test_large_words_are_as_much_too_much_as_many(clock: Clock) -> None:
    """By way of the SDK each stands in memory several times over."""
    unasked = Unasked(server="there", bounds=Bounds(bytes=100_000), clock=clock)
    clock.now = 1.0
    assert [unasked.admits(PROGRESS, 4_000) for _ in range(4)] == [True, True, False, False]
    clock.now = 2.0
    assert not unasked.admits(PROGRESS, 11_000)
    assert unasked.admits(PROGRESS, 10_000)
    assert unasked.admits({"method": "ping", "id": 1}, 99_000)
    assert not unasked.admits({"method": "ping", "id": 2}, 2_000)
    unasked.answered(1)
    assert unasked.admits({"method": "ping", "id": 2}, 2_000)
    assert not unasked.admits({"method": "m" * 2_000, "id": 3})
