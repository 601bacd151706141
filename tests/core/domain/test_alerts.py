"""What is unusual, by four rules over sliding windows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.alerts import AlertThresholds, AlertWatch, Unusual
from squidbot.core.domain.audit import ToolExecution

RECORD = ToolExecution(
    id="1",
    timestamp="2026-11-18T10:00:00.000000Z",
    squad_member_id=None,
    role="dev",
    server="git",
    tool="git_log",
    arguments="{}",
    result=None,
    success=True,
    error_message=None,
    origin="cli",
    outcome="ok",
    duration=0.1,
    revision="r",
)
REFUSED = replace(RECORD, outcome="refused", success=False)
FAILED = replace(RECORD, outcome="server_error", success=False)
QUIET = AlertThresholds(burst=None, refusals=None, first_use=False, error_rate=None)

pytestmark = pytest.mark.requirement("E-09")


def seen(watch: AlertWatch, record: ToolExecution, times: list[float]) -> list[Unusual]:
    return [item for time in times for item in watch.see(record, time)]


def test_more_calls_than_usual_in_a_short_time_are_a_burst() -> None:
    """And as many over a longer time are none."""
    watch = AlertWatch(replace(QUIET, burst=(3, 10.0)))
    assert seen(watch, RECORD, [0, 4, 8, 12, 16, 20]) == []
    [alert] = seen(watch, RECORD, [21, 22, 23])
    assert (alert.rule, alert.role) == ("burst", "dev")


def test_a_run_of_refusals_is_seen_and_told_once_in_a_while() -> None:
    """Somebody tries door after door; an alert for each would be a flood of its own."""
    watch = AlertWatch(replace(QUIET, refusals=(3, 60.0), cool_down=100.0))
    assert [item.rule for item in seen(watch, REFUSED, [1, 2, 3, 4, 5])] == ["refusals"]
    assert seen(watch, RECORD, [6, 7, 8]) == []
    assert len(seen(watch, REFUSED, [101, 102, 103, 104])) == 1
    assert seen(watch, replace(REFUSED, role="other"), [104, 105]) == []


def test_a_first_use_is_told_once_and_not_of_the_operator_nor_of_what_was_refused() -> None:
    """New behaviour of a role is worth a look; that of the person at the machine is theirs."""
    watch = AlertWatch(replace(QUIET, first_use=True))
    watch.know_uses([("dev", "git", "git_status")])
    assert seen(watch, replace(RECORD, tool="git_status"), [0]) == []
    assert seen(watch, REFUSED, [0]) == seen(watch, replace(RECORD, role="operator"), [0]) == []
    assert [item.tool for item in seen(watch, RECORD, [1, 2])] == ["git_log"]


def test_an_error_rate_needs_enough_calls_to_be_one() -> None:
    """One failure of one call is not half of a server's calls."""
    watch = AlertWatch(replace(QUIET, error_rate=(0.5, 4, 60.0)))
    assert seen(watch, FAILED, [0, 1, 2]) == []
    [alert] = seen(watch, RECORD, [3])
    assert (alert.rule, alert.server, alert.role) == ("error_rate", "git", None)
    assert "3 of 4 calls to server 'git' failed" in alert.message


def test_only_calls_count() -> None:
    """A prompt is no call, and a changed grant no burst."""
    watch = AlertWatch(AlertThresholds(burst=(1, 60.0)))
    assert seen(watch, replace(RECORD, kind="prompt"), [0, 1, 2, 3]) == []


@given(st.lists(st.tuples(st.floats(0, 1000), st.sampled_from(["ok", "refused", "timeout"])), max_size=60))
def test_whatever_comes_the_same_alert_keeps_its_distance(events: list[tuple[float, str]]) -> None:
    """For every stream of records."""
    thresholds = AlertThresholds(burst=(2, 50.0), refusals=(2, 50.0), error_rate=(0.5, 2, 50.0), cool_down=30.0)
    watch, last = AlertWatch(thresholds), dict[tuple[str | None, ...], float]()
    for time, outcome in sorted(events):
        for item in watch.see(replace(RECORD, outcome=outcome), time):  # type: ignore[arg-type]
            assert time - last.get(item.key, float("-inf")) >= 30.0
            last[item.key] = time
