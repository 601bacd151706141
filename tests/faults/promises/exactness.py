"""P11: a limit lets through exactly what it says, and tells the true time to wait.

python -m tests.faults.promises.exactness [--callers 1000] [--minutes 10] [--redis [--seconds 75]]

Many callers hammer one limit (L a minute, burst B) for some minutes of a clock that is moved by hand, with the date stepping an
hour to and fro meanwhile. Counts what passed in every 60 s, how much of the rate could be used beyond the burst, and how many of
those who waited as they were told passed. With --redis three processes share a real Redis, in real time, while its date and theirs
step an hour to and fro; in each of them somebody with a limit of his own waits as he is told.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from bisect import bisect_left, insort
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from squidbot.adapters.limits.memory import MemoryRateLimiter
from squidbot.adapters.limits.redis import RedisRateLimiter
from squidbot.adapters.system.clock import SystemClock
from squidbot.core.domain.errors import RateLimited
from squidbot.core.domain.limits import Limit
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import RateLimiter
from tests.fakes.door import FakeClock
from tests.faults.scene import ROOT
from tests.fixtures.redis_server import redis_server

PER_MINUTE, BURST = 600, 50
LIMIT = Limit("dev", rate=PER_MINUTE / 60, burst=BURST)
TOOL = ToolId("git", "git_log")
WINDOW = 60
PROCESSES = 3
READY = b"ready\n"
Passed: TypeAlias = tuple[float, float]
"""When a call was asked for, and when it was let through; on the monotonic clock, which all processes of a machine share."""


async def passes(limiter: RateLimiter, role: str = "dev") -> float:
    """0 if a call passed, else the seconds that it was told to wait."""
    try:
        await (await limiter.acquire(role, TOOL)).release()
    except RateLimited as limited:
        return limited.retry_after
    return 0.0


class SteppingClock(FakeClock):
    """Its date is an hour ahead, or behind, at every other look; what is monotonic goes on."""

    def __init__(self) -> None:
        super().__init__()
        self._steps = itertools.cycle((0, 3_600, -3_600))

    def time(self) -> float:
        return super().time() + next(self._steps)

    def timestamp(self) -> str:
        return datetime.fromtimestamp(self.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def judged(passed: list[Passed], obeyed: list[bool], seconds: float) -> bool:
    """Print what was seen; whether the promise is kept."""
    allowed = int(PER_MINUTE * WINDOW / 60) + BURST
    most = most_at_once(passed)
    used = (len(passed) - BURST) / (PER_MINUTE * seconds / 60)
    kept = sum(obeyed) / max(len(obeyed), 1)
    print(f"most in {WINDOW} s: {most} (at most {allowed}); used of the rate: {used:.4f} (at least 0.99)")
    print(f"passed after waiting as told: {kept:.4f} of {len(obeyed):,} (at least 0.99)")
    return most <= allowed and used >= 0.99 and kept >= 0.99


def most_at_once(passed: list[Passed]) -> int:
    """How many passed for certain in one window: asked after it began, and answered before its end."""
    passed = sorted(passed)
    answers: list[float] = []
    most = 0
    # From the last to the first: all that were asked later are in already.
    for asked, answered in reversed(passed):
        insort(answers, answered)
        most = max(most, bisect_left(answers, asked + WINDOW))
    return most


async def in_memory(callers: int, minutes: float) -> bool:
    clock = SteppingClock()
    limiter = MemoryRateLimiter([LIMIT], clock)
    passed: list[Passed] = []
    obeyed: list[bool] = []
    end = clock.now + 60 * minutes
    while clock.now < end:
        waits = await asyncio.gather(*(passes(limiter) for _ in range(callers)))
        passed += [(clock.now, clock.now)] * waits.count(0.0)
        told = min((wait for wait in waits if wait), default=0.0)
        clock.now += told
        if told:
            # Of all who waited as they were told the first passes; the others are in its way.
            obeyed.append(await passes(limiter) == 0.0)
            passed += [(clock.now, clock.now)] * obeyed[-1]
        clock.now += 0.037
    return judged(passed, obeyed, 60 * minutes)


async def in_redis(callers: int, seconds: float) -> bool:
    """Three processes that share one Redis."""
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as server:
        command = [sys.executable, "-m", "tests.faults.promises.exactness", "--url", server.url]
        command += ["--callers", str(-(-callers // PROCESSES)), "--seconds", str(seconds)]
        environment = {**os.environ, **server.environment}
        async with AsyncExitStack() as stack:
            runs: list[asyncio.subprocess.Process] = []
            for _ in range(PROCESSES):
                run = await asyncio.create_subprocess_exec(
                    *command, stdin=PIPE, stdout=PIPE, cwd=ROOT, env=environment, limit=2**26
                )
                stack.callback(suppress_gone(run.kill))
                runs.append(run)
            for run in runs:
                assert run.stdout is not None
                assert await run.stdout.readline() == READY
            answers = asyncio.gather(*(run.communicate(b"go\n") for run in runs))
            for step in (3_600, -3_600, 0):
                await asyncio.sleep(seconds / 4)
                server.step(step)
            said = [json.loads(out) for out, _ in await answers]
    print(f"asked {sum(each['asked'] for each in said):,} times")
    passed = [(asked, answered) for each in said for asked, answered in each["passed"]]
    return judged(passed, [kept for each in said for kept in each["obeyed"]], seconds)


async def one_of_several(url: str, callers: int, seconds: float) -> None:
    """Ask until the time is over, and tell what came of it."""
    passed: list[Passed] = []
    obeyed: list[bool] = []
    asked = 0
    patient = f"patient-{os.getpid()}"
    limits = [LIMIT, Limit(patient, rate=PER_MINUTE / 60, burst=1)]
    async with RedisRateLimiter(limits, url=url, clock=SystemClock()) as limiter:
        await passes(limiter, "somebody else")
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        await asyncio.to_thread(sys.stdin.readline)
        end = time.monotonic() + seconds

        async def caller() -> None:
            nonlocal asked
            while (began := time.monotonic()) < end:
                asked += 1
                told = await passes(limiter)
                if not told:
                    passed.append((began, time.monotonic()))
                else:
                    await asyncio.sleep(told + random.uniform(0, 0.5))

        async def obedient() -> None:
            """One whose way nobody is in: what is told must be true, however busy the counter is."""
            while time.monotonic() < end:
                if told := await passes(limiter, patient):
                    await asyncio.sleep(told)
                    obeyed.append(await passes(limiter, patient) == 0.0)

        await asyncio.gather(obedient(), *(caller() for _ in range(callers)))
    print(json.dumps({"asked": asked, "passed": passed, "obeyed": obeyed}))


def suppress_gone(end: Callable[[], None]) -> Callable[[], None]:
    def quietly() -> None:
        with suppress(ProcessLookupError):
            end()

    return quietly


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--callers", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--redis", action="store_true")
    parser.add_argument("--seconds", type=float, default=75)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.url:
        asyncio.run(one_of_several(options.url, options.callers, options.seconds))
        return 0
    print(f"{options.callers} callers, {PER_MINUTE}/m, burst {BURST}, in memory, {options.minutes:g} minutes")
    held = asyncio.run(in_memory(options.callers, options.minutes))
    if options.redis:
        print(f"{options.callers} callers in {PROCESSES} processes through Redis, {options.seconds:g} s")
        held = asyncio.run(in_redis(options.callers, options.seconds)) and held
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
