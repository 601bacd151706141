"""P12: a server that crashes is usable again within five seconds, and one that fails again and again is spared.

python -m tests.faults.promises.recovery [--servers 8] [--crashes 3] [--backoff 0.5]

A day of crashes is 10,000 of them: `--servers 20 --crashes 500 --backoff 0.01`, which waits less between them than
squidbot does. Prints how long it took to be usable again after a crash, what a flaky server's calls came to, and how often a
server that never answers was asked; ends with 1 if a promise is broken.
"""

import argparse
import asyncio
import gc
import math
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from squidbot import MCPClient, MCPConfig
from squidbot.adapters.mcp import pace
from tests.faults.measure import MEGABYTE, resident
from tests.faults.scene import stdio_entry
from tests.fixtures.running import until

PROMISED = 5.0
FLAKY_CALLS = 60
FLAKY_RATE = 0.25
"""Three calls of five, less those that come while it is started again."""
OPENS_AFTER = 5
REST = 10.0


async def crash(client: MCPClient, name: str) -> float:
    """Crash a server; the seconds until a call to it works again."""
    await client.call_tool(name, "act")
    began = time.perf_counter()

    async def usable() -> bool:
        return (await client.call_tool(name, "echo", {"text": "back"})).text == "back"

    await until(usable, what=f"{name} to be back", within=120)
    return time.perf_counter() - began


async def crashes(servers: int, times: int) -> list[float]:
    """The seconds of each recovery, of several servers side by side."""
    names = [f"crashing-{number}" for number in range(servers)]
    config = {"servers": {name: stdio_entry("crashes_mid_call") for name in names}}

    async def one(client: MCPClient, name: str) -> list[float]:
        return [await crash(client, name) for _ in range(times)]

    async with MCPClient(MCPConfig.from_dict(config)) as client:
        await client.connect_all()
        taken = await asyncio.gather(*(one(client, name) for name in names))
    return sorted(seconds for each in taken for seconds in each)


async def flaky() -> tuple[Counter[str], dict[str, int]]:
    """What the calls to a server came to that fails every third and is gone at every fifth."""
    outcomes: Counter[str] = Counter()
    async with MCPClient(MCPConfig.from_dict({"servers": {"flaky": stdio_entry("flaky")}})) as client:
        await client.connect("flaky")
        for _ in range(FLAKY_CALLS):
            result = await client.call_tool("flaky", "act")
            outcomes["ok" if not result.is_error else result.failure.kind if result.failure else "?"] += 1
            await asyncio.sleep(0.25)
        return outcomes, dict(client.status("flaky").counters)


def calls_of(notes: Path) -> int:
    """How many calls reached the server that keeps `notes`."""
    return notes.read_text("utf-8").splitlines().count("act")


async def spared() -> tuple[int, int, float]:
    """How many calls reached a server that does not answer, in its first second and until it was tried again."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        entry = stdio_entry("sulks", str(OPENS_AFTER), env={"FAULT_NOTES": str(notes)})
        async with MCPClient(MCPConfig.from_dict({"servers": {"sulks": entry}})) as client:
            await client.connect("sulks")
            for _ in range(4 * OPENS_AFTER):
                await client.call_tool("sulks", "act", timeout=0.1)
            opened = time.perf_counter()
            reached = calls_of(notes)

            async def works() -> bool:
                return not (await client.call_tool("sulks", "act", timeout=0.5)).is_error

            await until(works, what="the server to be tried again", within=3 * REST)
            return reached, calls_of(notes), time.perf_counter() - opened


def percentile(ordered: list[float], part: float) -> float:
    return ordered[math.ceil(len(ordered) * part) - 1]


async def main(servers: int, times: int, backoff: float) -> int:
    usual, pace.FIRST = pace.FIRST, backoff
    await crashes(servers, 1)
    gc.collect()
    before = resident()
    taken = await crashes(servers, times)
    gc.collect()
    kept = (resident() - before) / MEGABYTE
    pace.FIRST = usual
    p95 = percentile(taken, 0.95)
    print(f"{len(taken)} crashes: usable again after {percentile(taken, 0.5):.2f} s (p50), {p95:.2f} s (p95), ", end="")
    print(f"{taken[-1]:.2f} s (at most); memory {kept:+.1f} MB")
    outcomes, counters = await flaky()
    rate = outcomes["ok"] / FLAKY_CALLS
    print(f"a flaky server, {FLAKY_CALLS} calls: {rate:.0%} ok; {dict(outcomes)}; its own count: {counters}")
    reached, later, rest = await spared()
    print(
        f"a server that does not answer, {4 * OPENS_AFTER} calls: {reached} reached it; tried again after {rest:.1f} s"
    )
    held = (
        p95 < PROMISED
        and rate > FLAKY_RATE
        and kept < 20
        and reached == OPENS_AFTER
        and later == OPENS_AFTER + 1
        and rest < 1.5 * REST
    )
    return 0 if held else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--crashes", type=int, default=3)
    parser.add_argument("--backoff", type=float, default=pace.FIRST)
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.servers, options.crashes, options.backoff)))
