"""Tries every fault over every transport, and prints the matrix: `python -m tests.faults.run`.

--only NAME   cells whose name contains NAME; may be given more than once
--all         every fault over every transport that can have it, not a sample
--write       write docs/faults.md from what was seen
--jobs N      cells at the same time (2)

A cell that is late or misses a figure is measured once more, alone and at a quiet moment if one comes; again only if others took
more than a quarter of the machine meanwhile. Ends with 1 if any cell does not hold in the end.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Iterator, Sequence

from tests.faults.case import Cell
from tests.faults.cases import CASES, CELLS, EVERYTHING
from tests.faults.judge import Verdict
from tests.faults.measure import Machine
from tests.faults.report import page, summary, table
from tests.faults.scene import ROOT

PATIENCE = 60.0
"""Seconds after which a cell has hung the whole process."""
QUIET = 0.25
"""The part of the machine that others may use: beyond it figures say as much of them as of squidbot."""
ATTEMPTS = 5
"""How often a cell is measured alone while others disturb it."""
LULL = 30.0
"""Seconds for which a quiet moment is waited for."""


class Judge:
    """A process that judges cells one after the other; one that hangs or dies is replaced."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def verdict(self, cell: Cell) -> Verdict:
        try:
            async with asyncio.timeout(PATIENCE):
                process = self._process = self._process or await _start()
                assert process.stdin is not None
                process.stdin.write(f"{cell}\n".encode())
                return Verdict(**json.loads(await _line(process)))
        except (TimeoutError, EOFError, ConnectionError) as error:
            await self.close()
            what = "died" if isinstance(error, EOFError) else f"did not come back within {PATIENCE:g} s"
            return Verdict(str(cell), outcome="lost", broken=[f"the process {what}"])

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _start() -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error::ResourceWarning",
        "-m",
        "tests.faults.judge",
        cwd=ROOT,
        stdin=pipe,
        stdout=pipe,
        limit=1 << 24,
    )
    await _line(process)
    return process


async def _line(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise EOFError
    return line


async def try_all(cells: Sequence[Cell], jobs: int) -> dict[str, Verdict]:
    """A verdict for each cell; what was late or missed a figure among others is measured again alone."""
    verdicts = await judged(cells, jobs)
    again = [cell for cell in cells if verdicts[str(cell)].in_doubt]
    for attempt in range(ATTEMPTS):
        if again:
            print(
                f"\n{len(again)} cells were late or missed a figure and are measured alone, time {attempt + 1}",
                file=sys.stderr,
            )
            alone = await judged(again, 1, patient=True)
            for name, verdict in alone.items():
                verdict.attempts = attempt + 2
                verdicts[name] = verdict
            again = [cell for cell in again if alone[str(cell)].in_doubt and alone[str(cell)].others > QUIET]
    return verdicts


async def _lull() -> None:
    """Wait until others leave us the machine, as long as there is hope."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LULL):
            others = 1.0
            while others > QUIET:
                before = Machine.now()
                await asyncio.sleep(1)
                others = Machine.now().others_since(before)


async def judged(cells: Sequence[Cell], jobs: int, *, patient: bool = False) -> dict[str, Verdict]:
    """A verdict for each cell, so many of them at the same time; if `patient`, each at a quiet moment."""
    verdicts: dict[str, Verdict] = {}
    waiting = iter(cells)

    async def work(waiting: Iterator[Cell]) -> None:
        judge = Judge()
        try:
            for cell in waiting:
                if patient:
                    await _lull()
                verdicts[str(cell)] = verdict = await judge.verdict(cell)
                _tell(verdict, len(verdicts), len(cells))
        finally:
            await judge.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(jobs):
            tasks.create_task(work(waiting))
    return verdicts


def _tell(verdict: Verdict, done: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{done}/{of} {verdict.cell}", end="", file=sys.stderr, flush=True)
    if not verdict.held:
        print(f"\n{verdict.cell}: {verdict.outcome[:200]}", file=sys.stderr)
        for problem in [*verdict.broken, *verdict.late, *verdict.missed]:
            print(f"    {problem[:500]}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    known = EVERYTHING if options.all or options.only else CELLS
    cells = [cell for cell in known if not options.only or any(name in str(cell) for name in options.only)]
    if options.write and options.only:
        parser.error("a page of a few cells is no page: --write goes without --only")
    if not cells:
        parser.error(f"no cell is named like {' or '.join(options.only)}")
    verdicts = asyncio.run(try_all(cells, options.jobs))
    print(f"\n{table(CASES, verdicts)}\n")
    print("\n".join(summary(list(verdicts.values()))))
    if options.write:
        file = ROOT / "docs/faults.md"
        file.write_text(page(CASES, verdicts, before=file.read_text("utf-8")), encoding="utf-8")
    return 0 if all(verdict.held for verdict in verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
