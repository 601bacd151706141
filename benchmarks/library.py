"""Calls per second of MCPClient.call_tool over stdio beside the plain SDK's, in one run.

python -m benchmarks.library [--rounds 5] [--calls 2000]

Both call the same small echo server of the standard library, each its own process of it, one after the other in
every round, so that what else the machine does weighs on both. The ratio is taken round by round.
"""

import argparse
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import anyio
from loguru import logger
from mcp import Client, StdioServerParameters

from squidbot import MCPClient, MCPConfig

ROOT = Path(__file__).resolve().parents[1]
COMMAND = sys.executable
ARGS = ["-I", "-S", str(ROOT / "tests/fixtures/plain.py")]
CALLERS = (1, 32)
LONGEST = 10.0
"""Seconds for one measurement, however slow the machine."""

Call: TypeAlias = Callable[[], Awaitable[None]]


@asynccontextmanager
async def ours() -> AsyncIterator[Call]:
    """One call through MCPClient."""
    entry = {"command": COMMAND, "args": ARGS, "protocol": "legacy"}
    async with MCPClient(MCPConfig.from_dict({"servers": {"echo": entry}})) as client:
        if not await client.connect("echo"):
            raise SystemExit(f"the echo server did not start: {client.status('echo').error}")

        async def call() -> None:
            result = await client.call_tool("echo", "echo", {"text": "hello"})
            if result.text != "hello":
                raise SystemExit(f"a wrong answer: {result.text}")

        yield call


@asynccontextmanager
async def plain() -> AsyncIterator[Call]:
    """One call through the SDK's own client."""
    parameters = StdioServerParameters(command=COMMAND, args=ARGS)
    async with Client(parameters, mode="legacy", read_timeout_seconds=60) as client:
        await client.list_tools()

        async def call() -> None:
            result = await client.call_tool("echo", {"text": "hello"})
            if getattr(result.content[0], "text", None) != "hello":
                raise SystemExit(f"a wrong answer: {result.content}")

        yield call


async def rate(call: Call, callers: int, calls: int) -> float:
    """Calls per second of so many callers at once."""
    left = calls
    deadline = time.perf_counter() + LONGEST

    async def caller() -> None:
        nonlocal left
        while left > 0 and time.perf_counter() < deadline:
            left -= 1
            await call()

    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(callers):
            tasks.start_soon(caller)
    return (calls - max(left, 0)) / (time.perf_counter() - began)


def spread(values: list[float], unit: str) -> str:
    """The median, and between which two values all are."""
    return f"{statistics.median(values):>8,.1f}{unit} ({min(values):,.1f} to {max(values):,.1f})"


async def main(rounds: int, calls: int) -> None:
    print(f"echo over stdio, {rounds} rounds of {calls} calls each, median (lowest to highest)\n")
    print(f"{'callers':>7}  {'MCPClient, calls/s':<32}{'plain SDK, calls/s':<32}{'ratio':<24}")
    for callers in CALLERS:
        found: dict[str, list[float]] = {"ours": [], "plain": []}
        async with ours() as our_call, plain() as plain_call:
            for call in (our_call, plain_call):
                await rate(call, callers, calls // 10)  # both warm
            for _ in range(rounds):
                found["ours"].append(await rate(our_call, callers, calls))
                found["plain"].append(await rate(plain_call, callers, calls))
        ratios = [mine / theirs for mine, theirs in zip(found["ours"], found["plain"], strict=True)]
        columns = (spread(found["ours"], ""), spread(found["plain"], ""), spread(ratios, "x"))
        print(f"{callers:>7}  {columns[0]:<32}{columns[1]:<32}{columns[2]:<24}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=2_000)
    options = parser.parse_args()
    logger.remove()
    anyio.run(main, options.rounds, options.calls)
