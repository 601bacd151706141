"""P4: whatever is done to the rows, at whatever place, is found; and how many rows a second are verified.

python -m tests.faults.promises.tampering [--positions 1000] [--rows 100000]

Changes, deletes, inserts, moves and cuts off rows of a trail at every position, as somebody with the database's password
would: the head in the database is made to fit a cut, and a changed row's hashes are computed anew. Ends with 1 if one
of them goes unseen, or if verifying is slower than promised: by the processor's time where the machine has other work.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from loguru import logger
from sqlalchemy import Connection

from squidbot.adapters.store.chain import (
    INTENT_COLUMNS,
    INTENTS,
    RECORD_COLUMNS,
    RECORDS,
    Row,
    intent_hash,
    record_hash,
)
from squidbot.adapters.store.database import fetch, marks, run
from squidbot.adapters.store.head import Head
from squidbot.adapters.store.store import SQLStore
from squidbot.adapters.store.verifying import Broken, Verifier
from tests.fixtures.trail import call

PROMISED = 100_000
TABLES = ((RECORDS, RECORD_COLUMNS, record_hash), (INTENTS, INTENT_COLUMNS, intent_hash))


def row_at(connection: Connection, place: int) -> tuple[str, tuple[str, ...], Row]:
    """The row of a sequence, and the table it is in."""
    for table, columns, _ in TABLES:
        rows = fetch(connection, f"SELECT {', '.join(columns)} FROM {table} WHERE sequence = ?", (place,))
        if rows:
            return table, columns, rows[0]
    raise LookupError(place)


def flip(connection: Connection, place: int) -> None:
    """Another value in one column, each in its turn."""
    table, columns, row = row_at(connection, place)
    column = [name for name in columns if name not in ("sequence", "chain")][place % (len(columns) - 2)]
    before = row[columns.index(column)]
    value = before + 1 if isinstance(before, int | float) else f"{before}x"
    run(connection, f"UPDATE {table} SET {column} = ? WHERE sequence = ?", (value, place))


def delete(connection: Connection, place: int) -> None:
    table, _, _ = row_at(connection, place)
    run(connection, f"DELETE FROM {table} WHERE sequence = ?", (place,))


def insert(connection: Connection, place: int) -> None:
    """A row of one's own, all later ones moved up, the head as well."""
    table, columns, row = row_at(connection, place)
    for each, _, _ in TABLES:
        run(connection, f"UPDATE {each} SET sequence = -sequence WHERE sequence >= ?", (place,))
        run(connection, f"UPDATE {each} SET sequence = 1 - sequence WHERE sequence < 0")
    forged = tuple("forged" if name == "id" else value for name, value in zip(columns, row, strict=True))
    run(connection, f"INSERT INTO {table} ({', '.join(columns)}) VALUES {marks(len(columns))}", forged)
    run(connection, "UPDATE audit_chains SET sequence = sequence + 1")


def reorder(connection: Connection, place: int) -> None:
    """Two neighbours in each other's place."""
    one, two = row_at(connection, place)[0], row_at(connection, place + 1)[0]
    run(connection, f"UPDATE {one} SET sequence = -1 WHERE sequence = ?", (place,))
    run(connection, f"UPDATE {two} SET sequence = ? WHERE sequence = ?", (place, place + 1))
    run(connection, f"UPDATE {one} SET sequence = ? WHERE sequence = -1", (place + 1,))


def truncate(connection: Connection, place: int) -> None:
    """All rows from here on, and a head that fits what is left."""
    digest = row_at(connection, place - 1)[2][-1] if place > 1 else "0" * 64
    for table, _, _ in TABLES:
        run(connection, f"DELETE FROM {table} WHERE sequence >= ?", (place,))
    run(connection, "UPDATE audit_chains SET sequence = ?, hash = ?", (place - 1, digest))


def rewrite(connection: Connection, place: int) -> None:
    """Another value, and every hash from there on computed anew, as the store would."""
    table, _, _ = row_at(connection, place)
    run(connection, f"UPDATE {table} SET role = 'admin' WHERE sequence = ?", (place,))
    digest = row_at(connection, place - 1)[2][-1] if place > 1 else "0" * 64
    rows = sorted(
        (row[columns.index("sequence")], table, hashed, row)
        for table, columns, hashed in TABLES
        for row in fetch(connection, f"SELECT {', '.join(columns)} FROM {table} WHERE sequence >= ?", (place,))
    )
    for sequence, table, hashed, row in rows:
        digest = hashed(digest, row)
        run(connection, f"UPDATE {table} SET hash = ? WHERE sequence = ?", (digest, sequence))
    run(connection, "UPDATE audit_chains SET hash = ?", (digest,))


KINDS: tuple[Callable[[Connection, int], None], ...] = (flip, delete, insert, reorder, truncate, rewrite)


def found(connection: Connection, tamper: Callable[[Connection, int], None], place: int, head: Head) -> bool:
    """Whether the tampering is found; it is undone afterwards."""
    run(connection, "BEGIN IMMEDIATE")
    try:
        tamper(connection, place)
        Verifier(connection).verify(head)
    except Broken:
        return True
    finally:
        run(connection, "ROLLBACK")
    return False


async def trail(store: SQLStore, rows: int) -> None:
    """Write so many rows, half of them intents."""
    for begin in range(0, rows // 2, 1000):
        await asyncio.gather(*(call(store) for _ in range(min(1000, rows // 2 - begin))))


async def tampered(folder: Path, positions: int) -> list[str]:
    """What went unseen."""
    missed: list[str] = []
    async with SQLStore(None, state=folder) as store:
        await trail(store, positions + 2)
        head = store._head_file.read()
        assert head is not None
        with store._database.connect() as connection:
            Verifier(connection).verify(head)
            for tamper in KINDS:
                unseen = [place for place in range(1, positions + 1) if not found(connection, tamper, place, head)]
                print(f"{tamper.__name__}: {positions - len(unseen)} of {positions} found")
                missed += [f"{tamper.__name__} at {place} went unseen" for place in unseen]
    return missed


async def speed(folder: Path, rows: int) -> tuple[float, float]:
    """Rows verified a second, by the clock and by the processor's time: the best of three.

    On a machine that others use as well, only the second tells of us.
    """
    rates: list[tuple[float, float]] = []
    async with SQLStore(None, state=folder) as store:
        await trail(store, rows)
        for _ in range(3):
            began, worked = time.perf_counter(), time.process_time()
            verification = await store.verify()
            found = verification.records
            rates.append((found / (time.perf_counter() - began), found / (time.process_time() - worked)))
            assert verification.ok, verification
    return max(by_clock for by_clock, _ in rates), max(by_work for _, by_work in rates)


async def main(positions: int, rows: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        missed = await tampered(Path(folder, "small"), positions)
        print("\n".join(missed[:20]) or "0 went unseen")
        slow = False
        if rows:
            by_clock, by_work = await speed(Path(folder, "large"), rows)
            busy = os.getloadavg()[0] > (os.cpu_count() or 1)
            slow = (by_work if busy else by_clock) < PROMISED
            print(
                f"verified {by_clock:,.0f} rows a second, of {rows:,}; {by_work:,.0f} a second of the processor's time"
            )
            if busy:
                print("the machine has other work as well: judged by the processor's time")
    return 1 if missed or slow else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=100_000, help="0 measures nothing")
    options = parser.parse_args()
    logger.remove()
    sys.exit(anyio.run(main, options.positions, options.rows))
