"""Old rows go, the chain stays verifiable, and the going is itself recorded."""

import contextlib
import json
import sqlite3
from functools import partial

import anyio
import pytest

from squidbot.adapters.store import pruning
from squidbot.adapters.store.store import SQLStore
from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.callers import Caller
from tests.fixtures.trail import Place, all_of, call, end, intent

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E-12")]


def day(number: int) -> str:
    return f"2020-01-{number:02}T00:00:00.000000Z"


async def month(store: SQLStore) -> None:
    for number in range(1, 11):
        await call(store, timestamp=day(number))


async def test_what_is_older_goes_and_the_rest_verifies(place: Place) -> None:
    """Retention must not cost the proof of what is kept."""
    async with place.store() as store:
        await month(store)
        assert await store.prune(day(4), caller=Caller("operator", "ada", "cli")) == 6
        found = await store.verify()
        assert (found.ok, found.records) == (True, 15)
        records = await all_of(store)
        assert [record.timestamp for record in records[:-1]] == [day(number) for number in range(4, 11)]
        attested = json.loads(records[-1].arguments)
        assert (records[-1].kind, records[-1].squad_member_id, attested["sequence"]) == ("prune", "ada", 6)
        assert (attested["before"], attested["records"]) == (day(4), 6)


async def test_pruning_again_goes_on_from_there_and_nothing_to_prune_leaves_no_trace(place: Place) -> None:
    """Retention runs every day."""
    async with place.store() as store:
        await month(store)
        assert await store.prune(day(3)) == 4
        assert await store.prune(day(3)) == 0
        assert await store.prune(day(6)) == 6
        assert (await store.verify()).ok
        assert len(await all_of(store, RecordFilter(kind="prune"))) == 2
    async with place.store() as store:
        assert (await store.verify()).ok


async def test_an_open_call_and_all_after_it_stay(place: Place) -> None:
    """An intent that is gone before its end is a call that nobody can account for."""
    async with place.store() as store:
        await call(store, timestamp=day(1))
        begun = intent(timestamp=day(2))
        await store.begin(begun)
        await call(store, timestamp=day(3))
        assert await store.prune(day(9)) == 2
        await store.close(end(begun, timestamp=day(4)))
        assert (await store.verify()).ok
        assert await store.prune(day(9)) == 3


async def test_a_clock_that_jumped_takes_nothing_young_away(place: Place) -> None:
    """Whole beginnings go: up to the first row that is young enough, whatever comes after it."""
    async with place.store() as store:
        for number in (1, 8, 2, 3):
            await call(store, timestamp=day(number))
        assert await store.prune(day(5)) == 2


async def test_a_pruning_that_was_interrupted_is_merely_shorter(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill in the middle must not look like tampering."""
    monkeypatch.setattr(pruning, "_SLICE", 4)
    async with sqlite_place.store() as store:
        await month(store)
        (cut,) = await anyio.to_thread.run_sync(partial(pruning.plan, store._database, day(8)))
        steps = pruning.steps(store._database, cut, day(8), None)
        assert len(steps) == 5
        for step in steps[:3]:
            await store._write(step)
            assert (await store.verify()).ok
        assert (await all_of(store))[0].sequence == 10
        assert await store.prune(day(8)) == 6
        assert (await store.verify()).ok


async def test_a_beginning_that_went_without_a_record_is_found(sqlite_place: Place) -> None:
    """Otherwise whoever can delete rows would only have to move the base along."""
    async with sqlite_place.store() as store:
        await month(store)
        await store.prune(day(2))
    with contextlib.closing(sqlite3.connect(sqlite_place.state / "audit.db", isolation_level=None)) as connection:
        for table in ("tool_execution_logs", "tool_execution_intents"):
            (digest,) = connection.execute("SELECT hash FROM tool_execution_logs WHERE sequence = 8").fetchone()
            connection.execute(f"DELETE FROM {table} WHERE sequence < 8")
        connection.execute("DELETE FROM tool_execution_logs WHERE sequence = 8")
        connection.execute("UPDATE audit_chains SET base_sequence = 8, base_hash = ?", (digest,))
    async with sqlite_place.store() as store:
        found = await store.verify()
        assert found.first_bad is not None
        assert found.first_bad["sequence"] == 9
        assert found.first_bad["reason"].startswith("removed: rows before this one are gone")


async def test_a_pruning_record_that_says_nothing_attests_nothing(sqlite_place: Place) -> None:
    """Only what the store itself wrote, with a place and a hash, counts."""
    async with sqlite_place.store() as store:
        await store.close(end(kind="prune", arguments="not even JSON"))
        await store.close(end(kind="prune", arguments="[]"))
        assert (await store.verify()).ok


async def test_another_gateways_chain_is_pruned_with_its_own_attestation(postgres_place: Place) -> None:
    """A gateway that was taken out of service does not prune any more."""
    async with postgres_place.another("old").store() as old:
        await month(old)
    async with postgres_place.another("new").store() as new:
        await month(new)
        assert await new.prune(day(3)) == 8
        prunings = await all_of(new, RecordFilter(kind="prune"))
        assert len({record.chain for record in prunings}) == 2
        assert (await new.verify()).ok
    async with postgres_place.another("old").store() as old:
        assert (await old.verify()).ok
