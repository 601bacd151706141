"""Several processes on one trail, killed ones among them."""

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from squidbot.adapters.store import writer
from tests.fixtures.running import ROOT, program, until
from tests.fixtures.trail import Place, all_of, call, end, intent

pytestmark = pytest.mark.anyio


def calling(place: Place, folder: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "tests.faults.promises.caller", str(folder), *options]
    return [*command, *(["--url", place.url] if place.url else [])]


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.requirement("E-10", "E-05", "E-06")
@pytest.mark.deadline(120)
async def test_three_processes_that_write_at_once_make_one_whole_trail(place: Place) -> None:
    """A gateway, a command and an agent share the file, and nobody's rows are lost between them."""
    folder = place.state.parent
    with (
        program(calling(place, folder, "--calls", "60")) as one,
        program(calling(place, folder, "--calls", "60")) as two,
        program(calling(place, folder, "--calls", "60")) as three,
    ):
        await until(lambda: all(each.poll() is not None for each in (one, two, three)), what="three", within=100)
        assert [each.returncode for each in (one, two, three)] == [0, 0, 0]
    async with place.store() as store:
        records = await all_of(store)
        assert len(records) == lines(folder / "answers") == 180
        found = await store.verify()
        assert (found.ok, found.records) == (True, 360)


@pytest.mark.requirement("E-05", "E-06")
@pytest.mark.deadline(120)
async def test_a_killed_process_leaves_calls_that_the_next_one_closes_as_unknown(place: Place) -> None:
    """What was answered is there; what was begun has an end; and the chain goes on."""
    folder = place.state.parent
    with program(calling(place, folder, "--calls", "1000000")) as process:
        await until(lambda: lines(folder / "answers") > 20, what="some answers", within=100)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    async with place.store() as store:
        assert await store.open_intents() == 0
        assert (await store.verify()).ok
        outcomes = [record.outcome for record in await all_of(store)]
        assert outcomes.count("ok") >= lines(folder / "answers")
        assert outcomes.count("unknown") <= 8
        await call(store)


@pytest.mark.requirement("E-05")
async def test_how_far_back_a_crash_must_be_searched_moves_along(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that ran for months must not take minutes to start again."""
    monkeypatch.setattr(writer, "_MARK_EVERY", 10)
    async with place.store() as store:
        oldest = intent()
        for _ in range(20):
            await call(store)
        await store.begin(oldest)
        for _ in range(20):
            await call(store)
        assert await store.open_intents() == 1
        async with place.store() as other:
            await call(other)
        await store.close(end(oldest))
        assert await store.open_intents() == 0


async def test_a_database_that_is_up_to_date_is_opened_without_alembic(sqlite_place: Place) -> None:
    """A command that answers in a blink must not load what it does not need."""
    async with sqlite_place.store():
        pass
    program = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom squidbot.adapters.store.store import SQLStore\n"
        "async def main():\n    async with SQLStore(None, state=Path(sys.argv[1])):\n        pass\n"
        "asyncio.run(main())\nprint('alembic' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program, str(sqlite_place.state)]
    run = await anyio.run_process(command, cwd=ROOT)
    assert run.stdout == b"False\n"


async def test_all_files_are_for_their_owner_alone(sqlite_place: Place) -> None:
    """The trail holds what agents said and did."""
    async with sqlite_place.store() as store:
        await call(store)
        paths = [path for path in sqlite_place.state.rglob("*") if path.is_file()]
        assert {"audit.db", "audit.db-wal", "audit.db-shm", "audit.head"} <= {path.name for path in paths}
        assert {path.stat().st_mode & 0o077 for path in paths} == {0}
