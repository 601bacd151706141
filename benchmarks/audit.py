"""What the audit trail costs: records and calls per second, the wait of one caller, rows verified per second.

python -m benchmarks.audit [--url URL] [--calls 20000] [--folder FOLDER]

A call is an intent and an end, each on the disk before it is answered. Nothing else happens in a call here, so the
figures are the trail's alone. Give a folder on the disk that you want to measure; without a url it is SQLite.
"""

import argparse
import math
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from loguru import logger

from squidbot.adapters.store.store import SQLStore
from squidbot.core.domain.audit import Intent, ToolExecution

CALLERS = 64
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


async def main(url: str | None, calls: int, folder: Path) -> None:
    numbers = count()
    print(f"one commit of SQLite alone: {bare_commit(folder) * 1000:.2f} ms (median)")
    async with SQLStore(url, state=folder) as store:
        alone = [await call(store, next(numbers)) for _ in range(1000)]
        print(f"1 caller: {waits(alone)} a call, of two records")
        rate, taken = await crowd(store, calls, numbers)
        print(f"{CALLERS} callers: {rate:,.0f} calls/s, {2 * rate:,.0f} records/s; {waits(taken)}")
        began = time.perf_counter()
        verification = await store.verify()
        rate = verification.records / (time.perf_counter() - began)
        print(f"verify: {rate:,.0f} records/s; {verification}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    logger.remove()
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        anyio.run(main, options.url, options.calls, Path(made))
