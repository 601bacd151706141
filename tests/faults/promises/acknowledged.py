"""P1 and P3: nothing that was answered is missing from the trail, and nothing reached a server unannounced.

python -m tests.faults.promises.acknowledged [--calls 10000] [--kills 200] [--url URL] [--door MODULE:FUNCTION]

Makes calls in a process that is killed (-9) at random moments and started again. After every kill the trail is opened,
which closes what was left open, and verified: every answered call must be there as it was answered, every call that
reached a server must have an intent, and every intent exactly one end. Ends with 1 if a promise is broken.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from loguru import logger

from squidbot.adapters.store.database import fetch
from squidbot.adapters.store.store import SQLStore
from squidbot.core.domain.audit import RecordFilter
from tests.faults.promises import doors
from tests.faults.scene import ROOT

BEAT = 0.001
START = 60.0


@dataclass
class Tally:
    """What was seen, and what was wrong with it."""

    kills: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    wrong: list[str] = field(default_factory=list)


def names(path: Path) -> list[str]:
    return path.read_text("ascii").splitlines() if path.exists() else []


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def run_and_kill(command: list[str], answers: Path, *, after: int, at_start: float | None) -> bool:
    """Whether the process was killed: some seconds after its start, or after so many bytes of answers, if it lived."""
    before = size(answers)
    process = subprocess.Popen(command, cwd=ROOT)
    limit = time.monotonic() + (START if at_start is None else at_start)
    try:
        while process.poll() is None and time.monotonic() < limit and size(answers) - before < after:
            time.sleep(BEAT)
        alive = process.poll() is None
    finally:
        process.kill()
        process.wait()
    if not alive and process.returncode != 0:
        raise SystemExit(f"the caller ended by itself with {process.returncode}")
    return alive


async def judge(folder: Path, url: str | None, tally: Tally) -> None:
    """Open the trail as the next start would, and hold it against what was noted outside."""
    async with SQLStore(url, state=folder / "state") as store:
        verification = await store.verify()
        if not verification.ok:
            tally.wrong.append(f"the chain is broken: {verification.first_bad}")
        if count := await store.open_intents():
            tally.wrong.append(f"{count} intents have no end")
        ended: Counter[str] = Counter()
        good: set[str] = set()
        tally.outcomes.clear()
        async for record in store.records(RecordFilter()):
            name = json.loads(record.arguments)["name"]
            ended[name] += 1
            tally.outcomes[record.outcome] += 1
            if record.outcome == "ok":
                good.add(name)
        with store._database.connect() as connection:
            begun = [
                json.loads(row[0])["name"] for row in fetch(connection, "SELECT arguments FROM tool_execution_intents")
            ]
    tally.rows = verification.records
    compare(folder, begun, ended, good, tally)


def compare(folder: Path, begun: list[str], ended: Counter[str], good: set[str], tally: Tally) -> None:
    answered, reached = set(names(folder / "answers")), set(names(folder / "effects"))
    for what, missing in (
        ("answered calls are missing", answered - good),
        ("calls reached a server without an intent", reached - set(begun)),
        ("intents have no end", set(begun) - ended.keys()),
        ("ends have no intent", ended.keys() - set(begun)),
        ("calls have several ends", {name for name, times in ended.items() if times > 1}),
        ("calls have several intents", {name for name, times in Counter(begun).items() if times > 1}),
    ):
        if missing:
            tally.wrong.append(f"{len(missing)} {what}")


async def main(calls: int, kills: int, url: str | None, door: str) -> int:
    chance = random.Random(4)
    tally = Tally()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        answers = folder / "answers"
        while not tally.wrong and (tally.kills < kills or len(names(answers)) < calls):
            done = len(names(answers))
            command = [sys.executable, "-m", "tests.faults.promises.caller", str(folder), "--door", door]
            command += ["--first", str(done), "--calls", str(max(calls - done, 1000)), *(["--url", url] if url else [])]
            last = tally.kills >= kills
            share = max(calls // max(kills, 1), 1) * 8
            tally.kills += run_and_kill(
                command,
                answers,
                after=sys.maxsize if last else chance.randint(1, 2 * share),
                at_start=chance.uniform(0, 1) if chance.random() < 0.2 and not last else None,
            )
            await judge(folder, url, tally)
        answered, reached = len(names(answers)), len(set(names(folder / "effects")))
    print(
        f"{answered} calls answered, {reached} reached a server, {tally.kills} kills in {time.perf_counter() - began:.0f} s"
    )
    print(f"{tally.rows} rows verified after the last; ends: {dict(tally.outcomes)}")
    print("\n".join(tally.wrong) or "0 answered calls missing, 0 without an intent, 0 intents without exactly one end")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--url")
    parser.add_argument("--door", default=doors.STORE)
    options = parser.parse_args()
    logger.remove()
    sys.exit(anyio.run(main, options.calls, options.kills, options.url, options.door))
