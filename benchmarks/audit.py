"""What the audit trail costs: records and calls per second, the wait of one caller, rows verified per second.

python -m benchmarks.audit [--url URL] [--calls 20000] [--large 1000000] [--folder FOLDER]

A call is an intent and an end, each on the disk before it is answered. Nothing else happens in a call here, so the
figures are the trail's alone. Give a folder on the disk that you want to measure; without a url it is SQLite. Then a trail of
many records is made, in few transactions, and searched; ten million of them take about 9 GB and half an hour.
"""

import argparse
import math
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from loguru import logger

from benchmarks.keeping import keep
from squidbot.adapters.store.database import transaction
from squidbot.adapters.store.head import Head, HeadFile
from squidbot.adapters.store.ledger import Ledger
from squidbot.adapters.store.sqlite import SQLiteFile
from squidbot.adapters.store.store import SQLStore
from squidbot.core.domain.audit import Intent, RecordFilter, ToolExecution

CALLERS = 64
AT_ONCE = 20_000
"""Records of one transaction when a trail is filled."""
ARGUMENTS = '{"repository": "squidbot/gateway", "branch": "feature/a-branch", "message": "Say why, not what"}'
RESULT = '{"content": [{"type": "text", "text": "' + "a line of an answer; " * 12 + '"}]}'


def bare_commit(folder: Path) -> float:
    """The median of one small transaction of SQLite alone, in seconds: what the disk asks for."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare (text TEXT)")
    taken: list[float] = []
    for _ in range(500):
        began = time.perf_counter()
        connection.execute("INSERT INTO bare VALUES (?)", (RESULT,))
        taken.append(time.perf_counter() - began)
    connection.close()
    return percentile(taken, 0.5)


def identity(number: int) -> dict[str, Any]:
    """What an intent and an end have in common; ids that begin with the time stay together in an index."""
    return {
        "id": f"{time.time_ns():016x}{number:016x}",
        "timestamp": "2026-11-18T10:56:31.123456Z",
        "squad_member_id": "ada",
        "role": "backend_developer",
        "server": "git",
        "tool": f"git_tool_{number % 9}",
        "arguments": ARGUMENTS,
        "origin": "mcp",
        "revision": "file:1234567890abcdef/7",
    }


async def call(store: SQLStore, number: int) -> float:
    """One recorded call; the seconds that its two records took."""
    who = identity(number)
    intent = Intent(**who)
    record = ToolExecution(**who, result=RESULT, success=True, error_message=None, outcome="ok", duration=0.012345)
    began = time.perf_counter()
    await store.begin(intent)
    await store.close(record)
    return time.perf_counter() - began


async def crowd(store: SQLStore, calls: int, numbers: Iterator[int]) -> tuple[float, list[float]]:
    """Calls per second with many callers, and the seconds of each."""
    taken: list[float] = []

    async def caller() -> None:
        taken.extend([await call(store, next(numbers)) for _ in range(calls // CALLERS)])

    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(CALLERS):
            group.start_soon(caller)
    return len(taken) / (time.perf_counter() - began), taken


def percentile(taken: list[float], part: float) -> float:
    ordered = sorted(taken)
    return ordered[math.ceil(len(ordered) * part) - 1]


def waits(taken: list[float]) -> str:
    return f"p50 {percentile(taken, 0.5) * 1000:.2f} ms, p99 {percentile(taken, 0.99) * 1000:.2f} ms"


def fill(folder: Path, rows: int) -> None:
    """Put `rows` records into an empty trail: one in a thousand failed, one in ten thousand was refused a rare role."""
    database = SQLiteFile(folder / "audit.db", lock_timeout=5.0)
    database.create()
    head: Head | None = None
    with database.connect() as connection:
        for begin in range(0, rows, AT_ONCE):
            with transaction(connection, database.begin):
                ledger = Ledger(connection, database, database.chain)
                for number in range(begin, min(begin + AT_ONCE, rows)):
                    ledger.add_record(past(number, rows))
                head = ledger.flush()
    if head is not None:
        HeadFile(folder).write(head)


def past(number: int, rows: int) -> ToolExecution:
    """One record of a long past, as many days as it takes, in the order of time."""
    date = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=300 * 86_400 * number / rows)
    who = identity(number) | {"timestamp": date.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "id": f"{number:032x}"}
    if number % 10_000 == 7:
        who |= {"role": "designer"}
    failed = number % 1_000 == 7
    return ToolExecution(
        **who,
        result=None if failed else RESULT,
        success=not failed,
        error_message="it timed out" if failed else None,
        outcome="timeout" if failed else "ok",
        duration=0.012345,
    )


async def seconds_of(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def search(folder: Path, rows: int) -> dict[str, float]:
    """What a person waits for who looks into a trail of so many records; in milliseconds, but for the whole of it."""
    fill(folder, rows)
    day, after = "2026-05-20T00:00:00.000000Z", "2026-05-21T00:00:00.000000Z"
    wanted = {
        "the newest 50": RecordFilter(),
        "the newest 50 failures": RecordFilter(outcome="timeout"),
        "the newest 50 of a rare role": RecordFilter(role="designer"),
        "the newest 50 of one tool": RecordFilter(tool="git_tool_3"),
        "50 of one day in the middle": RecordFilter(since=day, until=after),
    }
    found: dict[str, float] = {}
    print(f"\na trail of {rows:,} records, {(folder / 'audit.db').stat().st_size / 1e6:,.0f} MB")
    async with SQLStore(None, state=folder) as store:
        for name, filtered in wanted.items():
            taken = [await seconds_of(partial(store.page, filtered, newest=50)) for _ in range(5)]
            found[name] = statistics.median(taken) * 1000
            print(f"  {name:<32}{found[name]:>10,.1f} ms")
        whole = await seconds_of(store.verify)
        found["verified per second"] = rows / whole
        print(f"  {'verify':<32}{whole * 1000:>10,.0f} ms, {rows / whole:,.0f} records/s")
    return found


async def main(url: str | None, calls: int, large: int, folder: Path) -> None:
    numbers = count()
    commit = bare_commit(folder) * 1000
    print(f"one commit of SQLite alone: {commit:.2f} ms (median)")
    async with SQLStore(url, state=folder) as store:
        alone = [await call(store, next(numbers)) for _ in range(1000)]
        print(f"1 caller: {waits(alone)} a call, of two records")
        rate, taken = await crowd(store, calls, numbers)
        print(f"{CALLERS} callers: {rate:,.0f} calls/s, {2 * rate:,.0f} records/s; {waits(taken)}")
        began = time.perf_counter()
        verification = await store.verify()
        verified = verification.records / (time.perf_counter() - began)
        print(f"verify: {verified:,.0f} records/s; {verification}")
    found: dict[str, Any] = {
        "bare_commit_ms": commit,
        "one_caller_p50_ms": percentile(alone, 0.5) * 1000,
        "callers": CALLERS,
        "calls": rate,
        "p50_ms": percentile(taken, 0.5) * 1000,
        "p99_ms": percentile(taken, 0.99) * 1000,
        "verified_per_second": verified,
    }
    if large:
        deep = folder / "large"
        async with SQLStore(None, state=deep):
            pass  # makes the tables
        found[f"of {large} records"] = await search(deep, large)
    if url is None:
        keep("audit", found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument(
        "--large", type=int, default=1_000_000, help="records of the trail that is searched; 0 for none"
    )
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    logger.remove()
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        anyio.run(main, options.url, options.calls, options.large, Path(made))
