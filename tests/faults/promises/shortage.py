"""A machine that has no more memory or threads to give refuses what is new, and keeps what there is.

python -m tests.faults.promises.shortage

Takes the process's address space away but for a little, so that neither a thread nor a large block can be had, then
connects several servers at once, over each transport, and makes a call with a large answer. Prints what each came to;
ends with 1 if the healthy server was hurt, a call hung, or what was refused does not work once there is room again.
"""

import asyncio
import contextlib
import gc
import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from squidbot import MCPClient, MCPConfig
from tests.faults.case import Case, Cell, Transport
from tests.faults.scene import staged

TRANSPORTS: tuple[Transport, ...] = ("stdio", "sse", "websocket", "http")
DEADLINE = 6.0
SPARE = (5, 12)
"""Megabytes that are left: for no thread; for a thread, but for no large answer."""


@contextlib.contextmanager
def no_more_memory(spare: int) -> Iterator[None]:
    """As if the machine had only `spare` megabytes left for us."""
    gc.collect()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + spare * 1_000_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


async def attempt(transport: Transport, spare: int) -> list[str]:
    """What is wrong with how connections fail, and with how they are made afterwards."""
    wrong: list[str] = []
    async with staged(Cell(Case(fault="behaves", row=60), transport)) as scene:
        settings = scene.settings
        several = [f"new-{number}" for number in range(4)]
        settings["servers"] |= dict.fromkeys(several, scene.entry)
        async with MCPClient(MCPConfig.from_dict(settings)) as client:
            await client.connect("healthy")
            with no_more_memory(spare):
                await asyncio.gather(*map(client.connect, several))
                during = await client.call_tool("healthy", "echo", {"text": "still here"})
            said = {name: client.status(name).error for name in several if client.status(name).state != "ready"}
            failed = sum(client.status(name).counters.get("restarts", 0) for name in several)
            print(f"{transport}, {spare} MB left: {4 - len(said)} of 4 connected, after {failed} attempts that failed")
            if said:
                print(f"  {(next(iter(said.values())) or '').splitlines()[0]}")
            if during.text != "still here":
                wrong.append(f"{transport}: the healthy server was hurt: {during.text}")
            wrong += [f"{transport}: nobody says why {name} was refused" for name, why in said.items() if not why]
            for name in said:
                await client.disconnect(name)
                if not await client.connect(name):
                    wrong.append(f"{transport}: {name} does not come up afterwards: {client.status(name).error}")
    return wrong


async def large(transport: Transport, spare: int) -> list[str]:
    """What is wrong with a call whose answer there is no room for."""
    wrong: list[str] = []
    case = Case(fault="large_answer", argument="9", row=60, settings={"request_timeout": DEADLINE})
    async with (
        staged(Cell(case, transport)) as scene,
        MCPClient(MCPConfig.from_dict(scene.settings)) as client,
    ):
        await client.connect("healthy")
        if not await client.connect("faulty"):
            return [f"{transport}: it did not start: {client.status('faulty').error}"]
        with no_more_memory(spare):
            began = time.perf_counter()
            result = await client.call_tool("faulty", "act", {})
            took = time.perf_counter() - began
            during = await client.call_tool("healthy", "echo", {"text": "still here"})
        print(
            f"{transport}, a 9 MB answer, {spare} MB left: {took:.1f} s, {result.text[:120] if result.is_error else 'ok'}"
        )
        if took > DEADLINE + 0.5:
            wrong.append(f"{transport}: the call took {took:.1f} s")
        if during.text != "still here":
            wrong.append(f"{transport}: the healthy server was hurt: {during.text}")
        del result
        deadline = time.monotonic() + 8
        while (again := await client.call_tool("faulty", "echo", {"text": "again"})).text != "again":
            if time.monotonic() > deadline:
                wrong.append(f"{transport}: it does not work afterwards: {again.text}")
                break
            await asyncio.sleep(0.1)
    return wrong


async def main() -> int:
    threading.stack_size(256 * 1_048_576)  # so that a thread is what there is no room for first
    wrong = [problem for transport in TRANSPORTS for spare in SPARE for problem in await attempt(transport, spare)]
    wrong += [problem for transport in TRANSPORTS for spare in SPARE for problem in await large(transport, spare)]
    print("\n".join(wrong) or "the healthy server went on, and all that was refused worked once there was room")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
