"""Calls per second of the library beside the plain SDK's client and beside a bare pipe, in one run.

python -m benchmarks.library [--rounds 5] [--calls 2000]

All call the same small echo server of the standard library: over stdio, each a process of its own; over streamable HTTP,
one bare ASGI application in front of it. They take turns in every round, so that what else the machine does weighs on all,
and ratios are taken round by round. `the door` is `AgentMCPService` with roles, schemas, limits, redaction and metrics,
with and without its record on disk.
"""

import argparse
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
from loguru import logger
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from benchmarks.door import ROLE, door
from benchmarks.gateways.floor import Pipe
from benchmarks.keeping import keep
from squidbot import MCPClient, MCPConfig
from tests.fixtures.running import program, until

ROOT = Path(__file__).resolve().parents[1]
COMMAND = sys.executable
ARGS = ["-I", "-S", str(ROOT / "benchmarks/echo.py")]
CALLERS = (1, 32)
LONGEST = 10.0
"""Seconds for one measurement, however slow the machine."""

Upstream: TypeAlias = Literal["stdio", "http"]
Call: TypeAlias = Callable[[], Awaitable[None]]
Subject: TypeAlias = Callable[[int], AbstractAsyncContextManager[Call]]
"""What opens one way of calling, given the port of the server over HTTP, or 0."""


@asynccontextmanager
async def _client(port: int) -> AsyncIterator[MCPClient]:
    where: dict[str, Any] = {"url": f"http://127.0.0.1:{port}/mcp"} if port else {"command": COMMAND, "args": ARGS}
    async with MCPClient(MCPConfig.from_dict({"servers": {"echo": {**where, "protocol": "legacy"}}})) as client:
        if not await client.connect("echo"):
            raise SystemExit(f"the echo server did not start: {client.status('echo').error}")
        yield client


def _must_be(text: object) -> None:
    if text != "hello":
        raise SystemExit(f"a wrong answer: {text}")


@asynccontextmanager
async def ours(port: int) -> AsyncIterator[Call]:
    """One call through MCPClient."""
    async with _client(port) as client:

        async def call() -> None:
            _must_be((await client.call_tool("echo", "echo", {"text": "hello"})).text)

        yield call


@asynccontextmanager
async def guarded(port: int, *, recorded: bool) -> AsyncIterator[Call]:
    """One call through the guarded door."""
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(_client(port))
            service = await door(stack, Path(folder) if recorded else None, source=client, registry=client.registry)

            async def call() -> None:
                _must_be((await service.execute_tool(ROLE, "echo", "echo", {"text": "hello"})).text)

            yield call


@asynccontextmanager
async def plain(port: int) -> AsyncIterator[Call]:
    """One call through the SDK's own client."""
    server: Any = StdioServerParameters(command=COMMAND, args=ARGS)
    if port:
        server = streamable_http_client(f"http://127.0.0.1:{port}/mcp")
    async with Client(server, mode="legacy", read_timeout_seconds=60) as client:
        await client.list_tools()

        async def call() -> None:
            result = await client.call_tool("echo", {"text": "hello"})
            _must_be(getattr(result.content[0], "text", None))

        yield call


@asynccontextmanager
async def bare(_port: int) -> AsyncIterator[Call]:
    """One call down a pipe, with nothing around it."""
    pipe = Pipe()
    await pipe.start([COMMAND, *ARGS])

    async def call() -> None:
        answer = await pipe.ask("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
        _must_be(answer["result"]["content"][0]["text"])

    yield call
    await pipe.stop()


SUBJECTS: dict[Upstream, dict[str, Subject]] = {
    "stdio": {
        "MCPClient": ours,
        "the door, no record": partial(guarded, recorded=False),
        "the door": partial(guarded, recorded=True),
        "plain SDK": plain,
        "a bare pipe": bare,
    },
    "http": {
        "MCPClient": ours,
        "the door, no record": partial(guarded, recorded=False),
        "the door": partial(guarded, recorded=True),
        "plain SDK": plain,
    },
}


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


async def compare(subjects: dict[str, Subject], port: int, *, rounds: int, calls: int) -> dict[str, Any]:
    """Calls per second of each, by the number of callers, one value a round."""
    found: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        opened = {name: await stack.enter_async_context(subject(port)) for name, subject in subjects.items()}
        for callers in CALLERS:
            rates: dict[str, list[float]] = {name: [] for name in opened}
            for call in opened.values():
                await rate(call, callers, calls // 10)  # warm
            for _ in range(rounds):
                for name, call in opened.items():
                    rates[name].append(await rate(call, callers, calls))
            for name, values in rates.items():
                ratios = [mine / theirs for mine, theirs in zip(values, rates["plain SDK"], strict=True)]
                print(f"{callers:>7}  {name:<22}{spread(values)}{'':<4}{spread(ratios, 2)} x the plain SDK", flush=True)
            found[str(callers)] = rates
    return found


def spread(values: list[float], digits: int = 0) -> str:
    """The median, and between which two values all are."""
    low, high = f"{min(values):,.{digits}f}", f"{max(values):,.{digits}f}"
    return f"{statistics.median(values):>9,.{digits}f} {f'({low} to {high})':<20}"


async def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True


async def main(rounds: int, calls: int) -> None:
    print(f"echo, {rounds} rounds of {calls} calls each: calls per second, median (lowest to highest)")
    print("\nover stdio")
    kept = {"stdio": await compare(SUBJECTS["stdio"], 0, rounds=rounds, calls=calls)}
    print("\nover streamable HTTP")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    with program([COMMAND, "-m", "benchmarks.gateways.floor", str(port), COMMAND, *ARGS]):
        await until(partial(_answers, port), what="the HTTP server")
        kept["http"] = await compare(SUBJECTS["http"], port, rounds=rounds, calls=calls // 4)
    keep("library", kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=2_000)
    options = parser.parse_args()
    logger.remove()
    anyio.run(main, options.rounds, options.calls)
