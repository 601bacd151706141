"""Alerts on their way: nobody waits for them, nobody loses them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from squidbot.core.domain.alerts import Alert, AlertThresholds
from squidbot.core.domain.audit import RecordFilter, ToolExecution
from squidbot.core.domain.errors import NotRecorded
from squidbot.core.services.alerting import Alerting
from tests.core.domain.test_alerts import QUIET, RECORD, REFUSED
from tests.fakes.door import FakeClock

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E-09")]


@dataclass
class Memory:
    """Satisfies `AlertMemory` and `AlertSink`."""

    earlier: list[ToolExecution] = field(default_factory=list)
    uses: set[tuple[str, str, str]] = field(default_factory=set)
    told: list[Alert] = field(default_factory=list)
    broken: bool = False

    async def first_uses(self) -> set[tuple[str, str, str]]:
        if self.broken:
            raise NotRecorded("no disk")
        return set(self.uses)

    async def note_first_use(self, role: str, server: str, tool: str) -> bool:
        if self.broken:
            raise NotRecorded("no disk")
        new = (role, server, tool) not in self.uses
        self.uses.add((role, server, tool))
        return new

    async def records(self, wanted: RecordFilter, *, newest: int | None = None) -> AsyncIterator[ToolExecution]:
        for record in self.earlier:
            yield record

    async def send(self, alert: Alert) -> None:
        self.told.append(alert)


def alerting(memory: Memory, thresholds: AlertThresholds) -> Alerting:
    return Alerting(thresholds, sinks=[memory], memory=memory, clock=FakeClock())


async def test_what_was_seen_is_told_before_the_end() -> None:
    """A command of a second must not swallow its alert."""
    memory = Memory()
    async with alerting(memory, replace(QUIET, refusals=(2, 60.0))) as watching:
        watching.observe(REFUSED)
        watching.observe(REFUSED)
    assert [alert.rule for alert in memory.told] == ["refusals"]
    assert memory.told[0].timestamp.endswith("Z")


async def test_earlier_runs_count_and_what_they_raised_is_not_raised_again() -> None:
    """Five commands of one refusal each are five refusals."""
    now = "2026-09-21T14:29:59.000000Z"  # a second before the fake clock's time
    memory = Memory(earlier=[replace(REFUSED, timestamp=now)])
    async with alerting(memory, replace(QUIET, refusals=(2, 1e9))) as watching:
        watching.observe(REFUSED)
    assert [alert.rule for alert in memory.told] == ["refusals"]


async def test_a_first_use_that_another_process_has_told_is_no_news() -> None:
    """It happens once, however many gateways there are."""
    memory = Memory()
    async with alerting(memory, replace(QUIET, first_use=True)) as watching:
        memory.uses.add(("dev", "git", "git_log"))
        watching.observe(RECORD)
    assert memory.told == []


async def test_a_broken_store_does_not_stop_the_watch() -> None:
    """The log and the webhook can still be told."""
    memory = Memory(broken=True)
    async with alerting(memory, replace(QUIET, first_use=True)) as watching:
        watching.observe(RECORD)
    assert [alert.rule for alert in memory.told] == ["first_use"]


async def test_nobody_is_watched_before_or_after() -> None:
    """An observer that is not open takes note and says nothing."""
    memory = Memory()
    watching = alerting(memory, replace(QUIET, first_use=True))
    watching.observe(RECORD)
    async with watching:
        pass
    watching.observe(replace(RECORD, tool="other"))
    assert memory.told == []


async def test_an_error_of_whoever_is_watched_comes_out_as_it_was() -> None:
    """A group around it would hide what went wrong."""
    with pytest.raises(ValueError, match="theirs"):
        async with alerting(Memory(), QUIET):
            raise ValueError("theirs")


@pytest.mark.requirement("G-10")
async def test_other_thresholds_and_other_listeners_hold_at_once() -> None:
    """What was seen before the change is not forgotten by it."""
    before, after = Memory(), Memory()
    async with alerting(before, replace(QUIET, refusals=(9, 60.0))) as watching:
        watching.observe(REFUSED)
        watching.replace(replace(QUIET, burst=(2, 60.0)), sinks=[after])
        for _ in range(3):
            watching.observe(RECORD)
    assert before.told == []
    assert [alert.rule for alert in after.told] == ["burst"]
