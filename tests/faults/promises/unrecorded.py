"""P2: without a record no call, and service resumes by itself.

python -m tests.faults.promises.unrecorded [--calls 1000] [--door MODULE:FUNCTION]

Makes calls while the audit trail's file is full, locked, read-only and gone, and counts those that reach a server; then
puts it right, and measures how long it takes until a call passes, without a restart. Ends with 1 if a call got
through, or service did not come back within five seconds.
"""

import argparse
import contextlib
import os
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

import anyio
from loguru import logger

from squidbot import SquidbotError
from squidbot.adapters.store.store import SQLStore
from tests.faults.promises import doors

PROMISED = 5.0
CALLERS = 64
NOBODY = 65534

Fault: TypeAlias = Callable[[Path], AbstractContextManager[None]]


@contextlib.contextmanager
def full(database: Path) -> Iterator[None]:
    """No file may grow: what a full disk does, without filling one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another program in the middle of a transaction."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextlib.contextmanager
def gone(database: Path) -> Iterator[None]:
    """Moved away, and back."""
    away = database.with_name("moved-away")
    database.rename(away)
    try:
        yield
    finally:
        away.rename(database)


@contextlib.contextmanager
def read_only(database: Path) -> Iterator[None]:
    """Files and folder that may not be written; root may write anything, so it becomes nobody for a while."""
    paths = [database.parent, *database.parent.iterdir()]
    modes = [path.stat().st_mode for path in paths]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path, mode in zip(paths, modes, strict=True):
            path.chmod(mode)


class Tried:
    """What came of calls: how many were refused, and which reached a server."""

    def __init__(self) -> None:
        self.refused = 0
        self.words = ""
        self.reached: list[str] = []

    async def calls(self, call: doors.Call, count: int) -> None:
        """Make so many, some side by side."""
        numbers = iter(range(count))

        async def caller() -> None:
            for number in numbers:
                try:
                    await call(f"refused-{number}")
                except SquidbotError as error:
                    self.refused += 1
                    self.words = str(error)

        async with anyio.create_task_group() as group:
            for _ in range(CALLERS):
                group.start_soon(caller)


async def resumed(call: doors.Call) -> float:
    """The seconds until a call passes."""
    began = time.perf_counter()
    while time.perf_counter() - began < 4 * PROMISED:
        with contextlib.suppress(SquidbotError):
            await call("again")
            break
    return time.perf_counter() - began


async def attempt(name: str, door: doors.Door, count: int, folder: Path, fault: Fault, *, at_start: bool) -> list[str]:
    """What is wrong with how a fault is met; `at_start` if the trail is opened only when it is there."""
    state = folder / "state"
    tried = Tried()
    async with contextlib.AsyncExitStack() as stack:
        if at_start:
            # Somebody else's open connection keeps the log beside the file, so that it can at least be read.
            async with SQLStore(None, state=state):
                other = stack.enter_context(contextlib.closing(sqlite3.connect(state / "audit.db")))
                other.execute("SELECT 1 FROM audit_chains").fetchone()
        else:
            call = await stack.enter_async_context(door(state, None, tried.reached.append))
            await call("before")
        with fault(state / "audit.db"):
            if at_start:
                call = await stack.enter_async_context(door(state, None, tried.reached.append))
            tried.reached.clear()
            await tried.calls(call, count)
            reached = len(tried.reached)
        seconds = await resumed(call)
    async with SQLStore(None, state=state) as store:
        verification = await store.verify()
    print(f"{name}: {reached} of {count} calls reached a server, {tried.refused} refused; back after {seconds:.2f} s")
    print(f"  {tried.words}")
    wrong = [f"{name}: {reached} calls reached a server"] if reached or tried.refused != count else []
    wrong += [f"{name}: back only after {seconds:.1f} s"] if seconds > PROMISED else []
    return wrong + ([] if verification.ok else [f"{name}: the chain is broken: {verification.first_bad}"])


async def main(calls: int, door: doors.Door) -> int:
    wrong: list[str] = []
    for fault, at_start in ((full, False), (locked, False), (gone, False), (read_only, True)):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # noqa: PTH101
            wrong += await attempt(fault.__name__, door, calls, Path(folder), fault, at_start=at_start)
    print("\n".join(wrong) or "no call without a record, and service resumed by itself")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--door", default=doors.HASTY)
    options = parser.parse_args()
    logger.remove()
    sys.exit(anyio.run(main, options.calls, doors.find(options.door)))
