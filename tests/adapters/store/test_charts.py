"""Pages of records and counts for charts, on SQLite and on PostgreSQL alike."""

from datetime import UTC, datetime

import pytest

from squidbot.core.domain.audit import RecordFilter
from tests.fixtures.trail import Place, beside, call, end

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E-10")]

BEGIN = datetime(2026, 11, 18, 10, 0, tzinfo=UTC).timestamp()


def at(seconds: float) -> str:
    return datetime.fromtimestamp(BEGIN + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def test_pages_go_back_to_the_first_record_while_others_write(place: Place) -> None:
    """Whoever reads on must miss nothing and see nothing twice, however much happens meanwhile."""
    async with place.store() as store, beside(place).store() as other:
        wanted = []
        for number in range(12):
            wanted.append((await call(store if number % 3 else other, timestamp=at(number))).id)
        seen: list[str] = []
        found, before = await store.page(RecordFilter(), newest=5)
        while True:
            assert len(found) <= 5
            seen += [record.id for record in found]
            await call(store, timestamp=at(100 + len(seen)))
            if before is None:
                break
            found, before = await store.page(RecordFilter(), newest=5, before=before)
    assert seen == [*reversed(wanted)]


async def test_pages_are_of_what_is_wanted_only(place: Place) -> None:
    """A filter holds on every page, and the last page says that it is the last."""
    async with place.store() as store:
        for number in range(6):
            await call(store, timestamp=at(number), tool="git_push" if number % 2 else "git_log")
        wanted = RecordFilter(tool="git_p*")
        first, before = await store.page(wanted, newest=2)
        assert before is not None
        last, end_ = await store.page(wanted, newest=2, before=before)
        assert ([record.tool for record in [*first, *last]], end_) == (["git_push"] * 3, None)
        assert await store.page(RecordFilter(role="nobody"), newest=2) == ([], None)


@pytest.mark.parametrize("seconds", [1, 10, 60, 3_600])
async def test_calls_are_counted_in_their_span(place: Place, seconds: int) -> None:
    """A chart that shows an error in the wrong minute sends people looking in the wrong place."""
    async with place.store() as store:
        for number, outcome in enumerate(("ok", "tool_error", "refused", "limited", "timeout", "ok")):
            moment = (number % 3) * seconds + seconds / 2
            await store.close(end(timestamp=at(moment), outcome=outcome, duration=0.1 * (number + 1)))
        await store.close(end(timestamp=at(3 * seconds), outcome="ok"))
        await store.close(end(timestamp=at(-0.001), outcome="ok"))
        await store.close(end(timestamp=at(0), kind="grant"))
        found = await store.series(RecordFilter(), begin=BEGIN, seconds=seconds, count=3)
    assert [bucket.begin for bucket in found.buckets] == [BEGIN + seconds * place for place in range(3)]
    assert [(bucket.calls, bucket.errors, bucket.refused) for bucket in found.buckets] == [
        (2, 0, 1),
        (2, 2, 0),
        (2, 0, 1),
    ]
    # Only what reached its server has a time: 0.1; 0.2 and 0.5; 0.6.
    low, middle, high = found.buckets
    assert low.p50 == pytest.approx(0.1, rel=0.35)
    assert middle.p50 == pytest.approx(0.2, rel=0.35)
    assert middle.p99 == pytest.approx(0.5, rel=0.35)
    assert high.p90 == pytest.approx(0.6, rel=0.35)


async def test_a_quiet_time_has_no_latency(place: Place) -> None:
    """Nothing is not zero milliseconds."""
    async with place.store() as store:
        found = await store.series(RecordFilter(server="none"), begin=BEGIN, seconds=60, count=2)
    assert [(bucket.calls, bucket.p50, bucket.p99) for bucket in found.buckets] == [(0, None, None)] * 2
