"""Whatever is done to the rows behind squidbot's back, `verify` finds it."""

import contextlib
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squidbot.adapters.store.chain import (
    INTENT_COLUMNS,
    INTENTS,
    RECORD_COLUMNS,
    RECORDS,
    intent_hash,
    record_hash,
    record_row,
)
from squidbot.core.domain.audit import Verification
from tests.fixtures.trail import Place, call, end, intent

pytestmark = pytest.mark.anyio


def tamper(place: Place, *statements: str) -> None:
    """Change the rows as somebody with the database's password would."""
    if place.url is None:
        with contextlib.closing(sqlite3.connect(place.state / "audit.db", isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
    else:
        with psycopg.connect(place.url, autocommit=True) as session:
            for statement in statements:
                session.execute(statement.encode())


async def verified(place: Place) -> Verification:
    async with place.store() as store:
        return await store.verify()


async def written(place: Place, calls: int = 5) -> None:
    async with place.store() as store:
        for _ in range(calls):
            await call(store)
        assert await store.verify() == Verification(ok=True, records=2 * calls, chains=1)


@pytest.mark.requirement("E-06")
async def test_an_empty_trail_is_whole(place: Place) -> None:
    """Nothing recorded is nothing wrong."""
    assert await verified(place) == Verification(ok=True, records=0, chains=0)


@pytest.mark.requirement("E-06")
@pytest.mark.parametrize(
    ("statement", "sequence", "reason"),
    [
        (f"UPDATE {RECORDS} SET role = 'admin' WHERE sequence = 4", 4, "changed"),
        (f"UPDATE {RECORDS} SET result = NULL WHERE sequence = 4", 4, "changed"),
        (f"UPDATE {INTENTS} SET arguments = '{{}}' WHERE sequence = 3", 3, "changed"),
        (f"DELETE FROM {RECORDS} WHERE sequence = 4", 4, "removed"),
        (f"DELETE FROM {INTENTS} WHERE sequence = 3", 3, "removed"),
        (f"DELETE FROM {INTENTS} WHERE sequence = 1", 1, "removed"),
        (f"DELETE FROM {RECORDS} WHERE sequence = 10", 10, "cut off"),
        (f"UPDATE {RECORDS} SET sequence = -2 WHERE sequence = 10", 2, "inserted"),
        (f"UPDATE {RECORDS} SET sequence = 3 WHERE sequence = 4", 3, "inserted"),
        (f"UPDATE {RECORDS} SET sequence = 11 WHERE sequence = 10", 10, "removed"),
        (f"UPDATE {RECORDS} SET chain = 'another' WHERE sequence = 4", None, "inserted"),
        ("UPDATE audit_chains SET hash = 'x'", 10, "the head"),
        ("UPDATE audit_chains SET sequence = 9", 10, "the head"),
        ("UPDATE audit_chains SET base_hash = 'x'", 1, "changed"),
        ("UPDATE audit_chains SET first_hash = 'x'", None, "inserted"),
        ("DELETE FROM audit_registry", None, "inserted"),
        ("UPDATE audit_registry SET first_hash = 'x'", None, "changed"),
        ("DELETE FROM audit_chains", None, "removed"),
    ],
)
async def test_a_row_that_was_touched_is_found(statement: str, sequence: int | None, reason: str, place: Place) -> None:
    """One kind of tampering each, and the finding names the row."""
    await written(place)
    tamper(place, statement)
    found = await verified(place)
    assert not found.ok
    assert found.first_bad is not None
    assert found.first_bad["sequence"] == sequence
    assert found.first_bad["reason"].startswith(reason)
    assert set(found.first_bad) == {"chain", "sequence", "id", "reason"}


@pytest.mark.requirement("E-06")
async def test_two_rows_in_each_others_place_are_found(place: Place) -> None:
    """The order is part of what happened."""
    await written(place)
    swap = "UPDATE {} SET sequence = {} WHERE sequence = {}"
    tamper(place, *(swap.format(RECORDS, *places) for places in ((99, 4), (4, 6), (6, 99))))
    found = await verified(place)
    assert found.first_bad is not None
    assert found.first_bad["sequence"] == 4


@pytest.mark.requirement("E-06")
async def test_a_tail_that_was_cut_off_with_its_head_is_missed_outside(place: Place) -> None:
    """A trail that ends early and says so itself looks whole; only something outside the database knows better."""
    await written(place)
    tamper(
        place,
        f"DELETE FROM {RECORDS} WHERE sequence > 8",
        f"DELETE FROM {INTENTS} WHERE sequence > 8",
        f"UPDATE audit_chains SET sequence = 8, hash = (SELECT hash FROM {RECORDS} WHERE sequence = 8)",
    )
    found = await verified(place)
    assert found.first_bad is not None
    assert found.first_bad["sequence"] == 9
    assert "audit.head says that it went on to 10" in found.first_bad["reason"]
    (place.state / "audit.head").unlink()
    assert (await verified(place)).ok


CUT = (
    f"DELETE FROM {RECORDS} WHERE sequence > 8",
    f"DELETE FROM {INTENTS} WHERE sequence > 8",
    f"UPDATE audit_chains SET sequence = 8, hash = (SELECT hash FROM {RECORDS} WHERE sequence = 8)",
)


@pytest.mark.requirement("E-06")
@pytest.mark.parametrize("meanwhile", ["stopped", "running"])
async def test_a_tail_that_was_cut_off_is_still_missed_when_the_trail_has_grown_past_it(
    meanwhile: str, place: Place
) -> None:
    """Whoever cuts off what they did need only wait until others have made as many calls."""
    async with place.store() as store:
        for _ in range(5):
            await call(store)
        if meanwhile == "running":
            tamper(place, *CUT)
            for _ in range(5):
                await call(store)
    if meanwhile == "stopped":
        tamper(place, *CUT)
        async with place.store() as store:
            for _ in range(5):
                await call(store)
    found = await verified(place)
    assert found.first_bad is not None
    assert found.first_bad["sequence"] == 10
    assert found.first_bad["reason"].startswith("changed: the row is not the one that audit.head.")
    for path in place.state.glob("audit.head.*"):
        path.unlink()
    assert (await verified(place)).ok


@pytest.mark.requirement("E-06")
async def test_a_spoilt_head_is_not_healed_in_silence(place: Place) -> None:
    """The next record would otherwise wipe away the trace."""
    await written(place)
    (place.state / "audit.head").write_text("nonsense")
    async with place.store() as store:
        await call(store)
        found = await store.verify()
    assert found.first_bad is not None
    assert found.first_bad["reason"] == "changed: audit.head.unreadable cannot be read"


@pytest.mark.requirement("E-06", "E-12")
async def test_what_was_pruned_is_not_missed(place: Place) -> None:
    """A gateway that slept while somebody pruned knows a head that is gone for good reason."""
    async with place.store() as sleeping:
        await call(sleeping)
        async with place.store() as store:
            await call(store)
            await store.prune("9999")
        await call(sleeping)
        assert (await sleeping.verify()).ok
    assert not list(place.state.glob("audit.head.*"))


@pytest.mark.requirement("E-06")
async def test_a_trail_that_was_written_anew_is_not_the_one_that_was_known(sqlite_place: Place) -> None:
    """Whoever can hash can make another chain that fits in itself."""
    await written(sqlite_place)
    rehash(sqlite_place.state / "audit.db")
    found = await verified(sqlite_place)
    assert found.first_bad is not None
    assert found.first_bad["reason"].startswith("changed: the row is not the one that audit.head knows")


@pytest.mark.requirement("E-06")
async def test_a_database_that_was_replaced_is_missed_until_a_person_says_so(sqlite_place: Place) -> None:
    """The simplest tampering of all is to remove the file."""
    await written(sqlite_place)
    (sqlite_place.state / "audit.db").unlink()
    found = await verified(sqlite_place)
    assert found.first_bad is not None
    assert found.first_bad["reason"].startswith("gone: audit.head is of another trail")
    async with sqlite_place.store() as store:
        await call(store)
        found = await store.verify()
        assert found.first_bad is not None
        assert found.first_bad["reason"].startswith("gone: the trail that audit.head.")
        for path in sqlite_place.state.glob("audit.head.*"):
            path.unlink()
        assert (await store.verify()).ok


async def test_a_head_that_is_none_is_told(place: Place) -> None:
    """A spoilt head proves nothing, so it is no silent pass."""
    await written(place)
    (place.state / "audit.head").write_text("nonsense")
    found = await verified(place)
    assert found.first_bad is not None
    assert found.first_bad["reason"] == "changed: audit.head cannot be read"


async def test_a_head_is_never_turned_back(place: Place) -> None:
    """Two processes write it: the slower one must not hide the rows of the faster."""
    async with place.store() as store:
        await call(store)
        before = (place.state / "audit.head").read_bytes()
        await call(store)
        after = (place.state / "audit.head").read_bytes()
        (place.state / "audit.head").write_bytes(before)
        assert (await store.verify()).ok
        (place.state / "audit.head").write_bytes(after.replace(b" 4 ", b" 9 "))
        await call(store)
        assert b" 9 " in (place.state / "audit.head").read_bytes()


@pytest.mark.requirement("E-10", "E-06")
async def test_each_gateway_has_a_chain_of_its_own_and_none_can_vanish(postgres_place: Place) -> None:
    """Gateways must not wait for each other's rows, and a whole chain is no easier to remove than a row."""
    for name in ("one", "two", "three"):
        async with postgres_place.another(name).store() as store:
            await call(store)
            chain = (await store.verify()).chains
    assert chain == 3
    gone = postgres_place.another("two").state.joinpath("gateway-id").read_text("ascii")
    tamper(
        postgres_place,
        *(f"DELETE FROM {table} WHERE chain = '{gone}'" for table in (RECORDS, INTENTS, "audit_chains")),
    )
    found = await verified(postgres_place.another("one"))
    assert found.first_bad == {"chain": gone, "sequence": None, "id": None, "reason": "removed: the chain is gone"}


@pytest.fixture(scope="module")
def trail(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A small trail to break copies of."""
    place = Place(None, tmp_path_factory.mktemp("trail"))
    anyio.run(written, place)
    return place


@pytest.fixture
def copy(trail: Place, tmp_path: Path) -> Place:
    shutil.copytree(trail.state, tmp_path / "copy")
    return Place(None, tmp_path / "copy")


values = (
    st.none()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(max_size=8)
)
columns = st.sampled_from([(RECORDS, name) for name in RECORD_COLUMNS] + [(INTENTS, name) for name in INTENT_COLUMNS])


@pytest.mark.requirement("E-06")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(column=columns, number=st.integers(0, 4), value=values)
async def test_the_chain_breaks_on_any_edit(copy: Place, column: tuple[str, str], number: int, value: Any) -> None:
    """Stated for every column, row and value: a row that reads differently is found."""
    table, name = column
    with contextlib.closing(sqlite3.connect(copy.state / "audit.db", isolation_level=None)) as connection:
        place = f"rowid_of.sequence = (SELECT sequence FROM {table} ORDER BY sequence LIMIT 1 OFFSET {number})"
        query = f"SELECT {name}, sequence FROM {table} AS rowid_of WHERE {place}"
        before, sequence = connection.execute(query).fetchone()
        try:
            connection.execute(f"UPDATE {table} SET {name} = ? WHERE sequence = ?", (value, sequence))
        except sqlite3.IntegrityError:
            # What the tables themselves refuse needs no chain.
            return
        (after,) = connection.execute(
            f"SELECT {name} FROM {table} WHERE sequence = ?", (value if name == "sequence" else sequence,)
        ).fetchone()
        changed = (type(after), after) != (type(before), before)
        try:
            assert (await verified(copy)).ok != changed
        finally:
            back = value if name == "sequence" else sequence
            connection.execute(f"UPDATE {table} SET {name} = ? WHERE sequence = ?", (before, back))


@pytest.mark.requirement("E-06")
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=4, max_size=4),
    others=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=4, max_size=4),
)
def test_no_two_rows_share_a_hash(texts: list[str], others: list[str]) -> None:
    """Text that moves from one column into the next is an edit, whatever separators it brings along."""

    def row(parts: list[str]) -> tuple[Any, ...]:
        record = replace(end(), id="1", role=parts[0], server=parts[1], tool=parts[2], error_message=parts[3])
        return record_row(record, chain="main", sequence=1, previous="0" * 64)

    one, two = row(texts), row(others)
    assert (one == two) == (one[-1] == two[-1])


def test_absent_and_empty_are_not_the_same() -> None:
    """No error and an error without words differ."""
    rows = [
        record_row(end(intent("1"), error_message=text), chain="main", sequence=1, previous="") for text in (None, "")
    ]
    assert rows[0][-1] != rows[1][-1]


def rehash(path: Path) -> None:
    """Change one row, and make all hashes after it fit again, the head too."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE {RECORDS} SET role = 'admin' WHERE sequence = 4")
        previous = "0" * 64
        for sequence in range(1, 11):
            for table, names, digest in (
                (RECORDS, RECORD_COLUMNS, record_hash),
                (INTENTS, INTENT_COLUMNS, intent_hash),
            ):
                query = f"SELECT {', '.join(names)} FROM {table} WHERE sequence = ?"
                row = connection.execute(query, (sequence,)).fetchone()
                if row is not None:
                    previous = digest(previous, row)
                    connection.execute(f"UPDATE {table} SET hash = ? WHERE sequence = ?", (previous, sequence))
        connection.execute("UPDATE audit_chains SET hash = ?", (previous,))
