"""P11: a limit lets through exactly what it says, and tells the true time to wait.

python -m tests.faults.promises.exactness [--callers 1000] [--minutes 10] [--redis]

Many callers hammer one limit (L a minute, burst B) for some minutes of a clock that is moved by hand, with the date stepping an
hour to and fro meanwhile. Counts what passed in every 60 s, how much of the rate could be used, and how many of those who
waited as they were told passed. With --redis a real Redis counts, in real time, for a quarter of a minute.
"""

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from bisect import bisect_left
from datetime import UTC, datetime
from pathlib import Path

from squidbot.adapters.limits.memory import MemoryRateLimiter
from squidbot.adapters.limits.redis import RedisRateLimiter
from squidbot.adapters.system.clock import SystemClock
from squidbot.core.domain.errors import RateLimited
from squidbot.core.domain.limits import Limit
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import RateLimiter
from tests.fakes.door import FakeClock
from tests.fixtures.redis_server import redis_server

PER_MINUTE, BURST = 600, 50
LIMIT = Limit("dev", rate=PER_MINUTE / 60, burst=BURST)
TOOL = ToolId("git", "git_log")


async def passes(limiter: RateLimiter) -> float:
    """0 if a call passed, else the seconds that it was told to wait."""
    try:
        await (await limiter.acquire("dev", TOOL)).release()
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


def judged(passed: list[float], obeyed: list[bool], seconds: float, *, window: float = 60, slack: float = 0) -> bool:
    """Print what was seen; whether the promise is kept, in every `window`, told with so much `slack`."""
    most = max((bisect_left(passed, start + window) - number for number, start in enumerate(passed)), default=0)
    allowed = int(PER_MINUTE * (window + slack) / 60) + BURST
    used = len(passed) / (PER_MINUTE * seconds / 60)
    kept = sum(obeyed) / max(len(obeyed), 1)
    print(f"most in {window:g} s: {most} (at most {allowed}); used of the rate: {used:.3f} (at least 0.99)")
    print(f"passed after waiting as told: {kept:.4f} of {len(obeyed):,} (at least 0.99)")
    return most <= allowed and used >= 0.99 and kept >= 0.99


async def in_memory(callers: int, minutes: float) -> bool:
    clock = SteppingClock()
    limiter = MemoryRateLimiter([LIMIT], clock)
    passed: list[float] = []
    obeyed: list[bool] = []
    end = clock.now + 60 * minutes
    while clock.now < end:
        waits = await asyncio.gather(*(passes(limiter) for _ in range(callers)))
        passed += [clock.now] * waits.count(0.0)
        told = min((wait for wait in waits if wait), default=0.0)
        clock.now += told
        if told:
            # Of all who waited as they were told the first passes; the others are in its way.
            obeyed.append(await passes(limiter) == 0.0)
            passed += [clock.now] * obeyed[-1]
        clock.now += 0.037
    return judged(passed, obeyed, 60 * minutes)


async def in_redis(callers: int) -> bool:
    seconds = 15.0
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as server:
        async with RedisRateLimiter([LIMIT], url=server.url, clock=SystemClock()) as limiter:
            passed: list[float] = []
            obeyed: list[bool] = []
            began = time.monotonic()
            while (now := time.monotonic()) - began < seconds:
                waits = await asyncio.gather(*(passes(limiter) for _ in range(min(callers, 100))))
                passed += [now] * waits.count(0.0)
                # Asked once more, alone: what one of many was told, another may have taken meanwhile.
                told = await passes(limiter)
                passed += [time.monotonic()] * (not told)
                if told:
                    await asyncio.sleep(told)
                    obeyed.append(await passes(limiter) == 0.0)
                    passed += [time.monotonic()] * obeyed[-1]
    # Noted before the question goes out: half a second is more than an answer takes.
    return judged(passed, obeyed, seconds, window=10, slack=0.5)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--callers", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--redis", action="store_true")
    options = parser.parse_args()
    print(f"{options.callers} callers, {PER_MINUTE}/m, burst {BURST}, in memory, {options.minutes:g} minutes")
    held = asyncio.run(in_memory(options.callers, options.minutes))
    if options.redis:
        print("through Redis, 15 s")
        held = asyncio.run(in_redis(options.callers)) and held
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
