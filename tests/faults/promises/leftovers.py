"""P7: nothing is left of a server, however it and however squidbot ends.

python -m tests.faults.promises.leftovers [--cycles 10] [--kills 5] [--at-once 1]

The whole dose is `--cycles 1000 --kills 200 --at-once 8`. Each cycle starts and stops five servers that end badly; each kill is a kill -9 of a host program that has them.
Prints what was left within five seconds (processes with our mark, zombies, open files); ends with 1 if anything was.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from squidbot import MCPClient, MCPConfig
from squidbot.adapters.mcp.reapers import SQUIDBOT
from tests.faults.measure import children, descriptors, marked
from tests.faults.scene import ROOT, stdio_entry

WITHIN = 5.0
SERVERS = {
    "behaves": ("behaves", ""),
    "ignores-eof": ("ignores_eof", "eof"),
    "ignores-sigterm": ("ignores_eof", "term"),
    "slow-flush": ("slow_flush", ""),
    "daemon": ("daemon_grandchild", "stubborn"),
}


def settings(mark: str) -> Mapping[str, Any]:
    """Five servers that carry `mark`, and whose children do."""
    env = {"FAULT_MARK": mark}
    return {"servers": {name: stdio_entry(*fault, env=env) for name, fault in SERVERS.items()}}


async def cycle() -> list[str]:
    """Start all, stop all; what is left afterwards."""
    mark = uuid.uuid4().hex
    async with MCPClient(MCPConfig.from_dict(settings(mark))) as client:
        connected = await client.connect_all()
    failed = [f"{name!r} did not start" for name, ready in connected.items() if not ready]
    return failed + await asyncio.to_thread(gone, mark)


def kill() -> list[str]:
    """Start a program that has all of them, kill it; what is left afterwards."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "settings.json")
        path.write_text(json.dumps(settings(mark)), encoding="utf-8")
        command = [sys.executable, "-m", "tests.adapters.mcp.servers.host", str(path)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as host:
            assert host.stdout is not None
            ready = host.stdout.readline()
            host.kill()
    return ([] if ready else ["the host program did not start"]) + gone(mark, host.pid)


def gone(mark: str, squidbot: int | None = None) -> list[str]:
    """What carries `mark`, or watched over servers for the process `squidbot`, five seconds later, or nothing as soon as nothing does."""
    deadline = time.monotonic() + WITHIN
    watchers = f"{SQUIDBOT}={squidbot}\0"
    while (left := marked(mark) + (marked(watchers) if squidbot else [])) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


async def repeated(what: str, times: int, at_once: int, act: Callable[[], Awaitable[list[str]]]) -> list[str]:
    """Do it so many times, a few side by side; everything that was left."""
    left: list[str] = []
    numbers = iter(range(1, times + 1))

    async def work() -> None:
        for number in numbers:
            left.extend(await act())
            if sys.stderr.isatty():
                print(f"\r{number} of {times} {what}, left: {len(left)} ", end="", file=sys.stderr)

    await asyncio.gather(*(work() for _ in range(at_once)))
    return left


async def main(cycles: int, kills: int, at_once: int) -> int:
    await repeated("cycles", at_once, at_once, cycle)  # what is loaded and opened once is no leak
    before = len(descriptors())
    left = await repeated("cycles", cycles, at_once, cycle)
    left += gone(uuid.uuid4().hex, os.getpid())
    left += await repeated("kills", kills, at_once, lambda: asyncio.to_thread(kill))
    zombies, files = len(children()), len(descriptors()) - before
    print(f"\n{cycles} cycles and {kills} kills of {len(SERVERS)} servers each: {len(left)} processes left, ", end="")
    print(f"{zombies} zombies, {files:+d} open files")
    for one in left[:10]:
        print(f"    {one}")
    return 1 if left or zombies or abs(files) > 2 else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.cycles, options.kills, options.at_once)))
