"""When the trail cannot be written nothing is recorded and nothing is lost in silence; when it can again, it goes on."""

import asyncio
import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import psycopg
import pytest
from loguru import logger

from squidbot.adapters.store import doubts, sqlite
from squidbot.adapters.store.failures import not_recorded
from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.errors import NotRecorded
from tests.faults.promises.unrecorded import full, gone, locked, read_only
from tests.fixtures.trail import Place, all_of, call, end, intent

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E-05")]

QUICKLY = 0.1


@contextlib.contextmanager
def log() -> Iterator[list[str]]:
    """What is logged meanwhile."""
    lines: list[str] = []
    number = logger.add(lines.append, format="{message}")
    try:
        yield lines
    finally:
        logger.remove(number)


@pytest.mark.parametrize(
    ("fault", "said"),
    [(full, "did not take or give"), (locked, "keeps the database locked"), (gone, "the file is gone")],
)
async def test_a_trail_that_cannot_be_written_refuses_and_goes_on_by_itself(
    fault: object, said: str, sqlite_place: Place
) -> None:
    """No record, no call; and nobody should have to restart a gateway because a disk was full for a minute."""
    assert callable(fault)
    async with sqlite_place.store(lock_timeout=QUICKLY) as store:
        await call(store)
        with fault(sqlite_place.state / "audit.db"):
            with pytest.raises(NotRecorded, match=said) as refused:
                await store.begin(intent())
            assert str(sqlite_place.state) not in str(refused.value)
            assert str(sqlite_place.state) in str(refused.value.hint)
        await call(store)
        assert len(await all_of(store)) == 2
        assert (await store.verify()).ok


async def test_a_trail_that_may_not_be_written_is_read_and_refuses_calls(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """An auditor with the right to read must be able to; a gateway must not run on it unrecorded."""
    folder = tmp_path_factory.mktemp("shared")
    for path in (folder, *takewhile(lambda path: path.name != Path(tempfile.gettempdir()).name, folder.parents)):
        path.chmod(0o755)
    place = Place(None, folder / "state")
    async with place.store() as writer:
        await call(writer)
        with read_only(place.state / "audit.db"):
            async with place.store() as reader:
                assert len(await all_of(reader)) == 1
                assert (await reader.verify()).ok
                with pytest.raises(NotRecorded, match="may not be written"):
                    await reader.close(end())
        await call(writer)


async def test_an_end_that_could_not_be_written_is_written_with_the_next_record(sqlite_place: Place) -> None:
    """The call did happen: its true end must not become `unknown` if it can be helped."""
    async with sqlite_place.store(lock_timeout=QUICKLY) as store:
        begun = intent()
        await store.begin(begun)
        with locked(sqlite_place.state / "audit.db"), pytest.raises(NotRecorded):
            await store.close(end(begun, outcome="tool_error"))
        await call(store)
        found = await store.get(begun.id)
        assert found is not None
        assert found.outcome == "tool_error"
        assert await store.open_intents() == 0
        assert (await store.verify()).ok


async def test_an_end_that_could_not_be_written_is_written_when_the_store_is_left(sqlite_place: Place) -> None:
    """There may be no next record."""
    begun = intent()
    async with sqlite_place.store(lock_timeout=QUICKLY) as store:
        await store.begin(begun)
        with locked(sqlite_place.state / "audit.db"), pytest.raises(NotRecorded):
            await store.close(end(begun, outcome="timeout"))
    async with sqlite_place.store() as store:
        found = await store.get(begun.id)
        assert found is not None
        assert found.outcome == "timeout"


async def test_an_end_that_is_sent_again_is_recorded_once(sqlite_place: Place) -> None:
    """A caller who tries again must not be punished for it."""
    async with sqlite_place.store(lock_timeout=QUICKLY) as store:
        begun = intent()
        await store.begin(begun)
        with locked(sqlite_place.state / "audit.db"), pytest.raises(NotRecorded):
            await store.close(end(begun))
        await store.close(end(begun))
        await call(store)
        assert len(await all_of(store)) == 2


async def test_an_intent_that_is_there_although_it_was_refused_gets_an_end(place: Place) -> None:
    """The answer to a commit can be lost after the commit; the call was not made, and the record must say so."""
    async with place.store() as store:
        lost, never = intent(), intent()
        await store.begin(lost)
        store._writer._doubts.add([lost, never])
        await call(store)
        found = await store.get(lost.id)
        assert found is not None
        assert (found.outcome, found.error_message) == (
            "refused",
            "it was not certain that the call is recorded, so it was not made",
        )
        assert await store.get(never.id) is None
        assert (await store.verify()).ok


async def test_what_waits_in_memory_is_bounded_and_its_loss_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that stays full for a day must not take the memory as well."""
    monkeypatch.setattr(doubts, "_AT_MOST", 2)
    waiting = doubts.Doubts()
    with log() as lines:
        waiting.add([end(intent(name)) for name in ("one", "two", "three")])
    assert lines == ["too many records wait for the audit trail: the end of 'one' is lost\n"]


async def test_an_alert_that_cannot_be_kept_is_logged_and_raises_nothing(sqlite_place: Place) -> None:
    """Whoever watches must not fall over what they saw."""
    odd: dict[str, object] = {}
    odd["itself"] = odd
    async with sqlite_place.store(lock_timeout=QUICKLY) as store:
        with locked(sqlite_place.state / "audit.db"), log() as lines:
            await store.send(Alert("1", "2026", "burst", "qa_tester", None, None, "many calls"))
            await store.send(Alert("2", "2026", "burst", "qa_tester", None, None, "odd ones", odd))
        assert [line.partition(":")[0] for line in lines] == [
            "an alert is not kept (many calls)",
            "an alert is not kept (odd ones)",
        ]


async def test_a_file_that_was_replaced_is_written_from_the_next_record_on(sqlite_place: Place) -> None:
    """Nothing may go into a file that nobody can see any more, also not into the old one behind it."""
    database = sqlite_place.state / "audit.db"
    async with sqlite_place.store() as store:
        await call(store)
        database.rename(database.with_name("old.db"))
        for name in ("audit.db-wal", "audit.db-shm"):
            database.with_name(name).unlink()
        database.touch(0o600)
        record = await call(store)
        assert await store.get(record.id) is not None
        with contextlib.closing(sqlite3.connect(database)) as connection:
            assert connection.execute("SELECT COUNT(*) FROM tool_execution_logs").fetchone() == (1,)


def garbage(database: Path) -> None:
    database.write_bytes(os.urandom(8192))


def half(database: Path) -> None:
    os.truncate(database, database.stat().st_size // 2)


def hole(database: Path) -> None:
    with database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)


def rot(database: Path) -> None:
    """The rows are spoilt, and what tells the version of the tables is not."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'tool_execution_logs'"
        (root,) = connection.execute(query).fetchone()
    with database.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)


@pytest.mark.parametrize(
    ("damage", "said"),
    [(garbage, "no SQLite database"), (half, "damaged"), (hole, "damaged"), (rot, "damaged")],
)
async def test_a_damaged_file_is_refused_at_start_and_left_as_it_is(
    damage: object, said: str, sqlite_place: Place
) -> None:
    """Whoever finds out what happened needs the file as it was found."""
    assert callable(damage)
    database = sqlite_place.state / "audit.db"
    async with sqlite_place.store() as store:
        await call(store)
    damage(database)
    before = database.read_bytes()
    with pytest.raises(NotRecorded, match=said) as refused:
        async with sqlite_place.store():
            pass
    assert "move the file" in str(refused.value.hint)
    assert database.read_bytes() == before
    if damage is rot:
        looking = sqlite_place.store()
        looking.only_reads = True
        async with looking:
            found = await looking.verify()
        assert found.first_bad is not None
        assert found.first_bad["reason"].startswith("damaged")
        assert database.read_bytes() == before


async def test_damage_in_a_large_file_is_found_when_it_is_verified(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking through gigabytes at every start would take minutes."""
    monkeypatch.setattr(sqlite, "_QUICKLY_CHECKED", 0)
    async with sqlite_place.store() as store:
        await asyncio.gather(*(call(store) for _ in range(500)))
    database = sqlite_place.state / "audit.db"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'tool_execution_logs'").fetchone()
    with database.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 4096)
    async with sqlite_place.store() as store:
        found = await store.verify()
        assert found.first_bad is not None
        assert found.first_bad["reason"].startswith("damaged")


async def test_tables_of_a_newer_squidbot_are_left_alone(place: Place) -> None:
    """An older program does not know what it would break."""
    async with place.store():
        pass
    newer = "UPDATE alembic_version SET version_num = '9999'"
    if place.url is None:
        with contextlib.closing(sqlite3.connect(place.state / "audit.db", isolation_level=None)) as connection:
            connection.execute(newer)
    else:
        with psycopg.connect(place.url, autocommit=True) as session:
            session.execute(newer.encode())
    with pytest.raises(NotRecorded, match=r"newer squidbot \(its tables are version 9999\)"):
        async with place.store():
            pass


async def test_a_state_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """The first start on a new machine is where rights are wrong."""
    (tmp_path / "file").touch()
    with pytest.raises(NotRecorded, match="Not a directory"):
        async with Place(None, tmp_path / "file" / "state").store():
            pass


async def test_what_nobody_foresaw_is_told_by_its_name() -> None:
    """Better a strange word than a silent one."""
    assert "KeyError" in str(not_recorded(KeyError("x"), place="there"))
    assert "odd" in str(not_recorded(sqlite3.OperationalError("odd"), place="there"))


async def test_reading_what_cannot_be_read_is_a_refusal(sqlite_place: Place) -> None:
    """Readers hear of it in the same words."""
    async with sqlite_place.store() as store:
        with gone(sqlite_place.state / "audit.db"), pytest.raises(NotRecorded, match="cannot be opened"):
            await all_of(store, RecordFilter())
