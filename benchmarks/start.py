"""How long servers take to start and be listed: all side by side, beside one after another, and beside the processes alone.

python -m benchmarks.start [--rounds 3] [--servers 1 10 50]

`processes` is what the machine needs to start as many bare servers and read one answer from each, side by side.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from loguru import logger
from mcp import Client, StdioServerParameters

from benchmarks.keeping import keep
from squidbot import MCPClient, MCPConfig

ROOT = Path(__file__).resolve().parents[1]
COMMAND = sys.executable
ARGS = ["-I", "-S", str(ROOT / "tests/fixtures/plain.py")]
ASK = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'


async def ours(count: int) -> None:
    entry = {"command": COMMAND, "args": ARGS}
    config = MCPConfig.from_dict({"servers": {f"echo{number}": entry for number in range(count)}})
    async with MCPClient(config) as client:
        await client.connect_all()
        if len(client.get_available_tools()) != 2 * count:
            raise SystemExit("not all tools were listed")


async def one_after_another(count: int) -> None:
    for _ in range(count):
        async with Client(StdioServerParameters(command=COMMAND, args=ARGS), mode="legacy") as client:
            await client.list_tools()


async def processes(count: int) -> None:
    bare_processes(count)


def bare_processes(count: int) -> None:
    pipe = subprocess.PIPE
    running = [subprocess.Popen([COMMAND, *ARGS], stdin=pipe, stdout=pipe) for _ in range(count)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(ASK)
        process.stdin.flush()
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    for process in running:
        process.communicate()


async def seconds(work: Callable[[int], Awaitable[None]], count: int) -> float:
    began = time.perf_counter()
    await work(count)
    return time.perf_counter() - began


async def main(rounds: int, counts: list[int]) -> None:
    print(f"{rounds} rounds, median seconds until all tools are listed\n")
    print(
        f"{'servers':>7}{'squidbot':>11}{'plain SDK, one by one':>24}{'processes':>11}{'beside SDK':>12}{'processes':>11}"
    )
    kept: dict[str, Any] = {}
    for count in counts:
        rows = [[await seconds(work, count) for work in (ours, one_after_another, processes)] for _ in range(rounds)]
        kept[str(count)] = {
            name: list(column) for name, column in zip(("ours", "plain", "bare"), zip(*rows, strict=True), strict=True)
        }
        mine, sdk, bare = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{count:>7}{mine:>11.2f}{sdk:>24.2f}{bare:>11.2f}{mine / sdk:>11.2f}x{mine / bare:>10.2f}x", flush=True)
    keep("start", kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 10, 50])
    options = parser.parse_args()
    logger.remove()
    anyio.run(main, options.rounds, options.servers)
