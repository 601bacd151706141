"""A machine that has no more open files to give refuses new servers and keeps the old ones.

python -m tests.faults.promises.descriptors

Takes all but a few of the process's open files away, connects over each transport, and gives them back. Prints what
each attempt came to; ends with 1 if the healthy server was hurt, or a refused one does not come up afterwards.
"""

import asyncio
import contextlib
import os
import resource
import sys
from collections.abc import Iterator

from squidbot import MCPClient, MCPConfig
from tests.faults.case import Case, Cell, Transport
from tests.faults.scene import staged

TRANSPORTS: tuple[Transport, ...] = ("stdio", "sse", "websocket", "http")


@contextlib.contextmanager
def no_more_files(spare: int) -> Iterator[None]:
    """As if the machine had only `spare` open files left for us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    taken: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(spare):
            os.close(taken.pop())
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def attempt(transport: Transport, spare: int) -> list[str]:
    """What is wrong with how a connection fails, and with how it is made afterwards."""
    wrong: list[str] = []
    async with (
        staged(Cell(Case(fault="behaves", row=60), transport)) as scene,
        MCPClient(MCPConfig.from_dict(scene.settings)) as client,
    ):
        await client.connect("healthy")
        with no_more_files(spare):
            refused = not await client.connect("faulty")
            during = await client.call_tool("healthy", "echo", {"text": "still here"})
        said = client.status("faulty").error or ""
        print(f"{transport}, {spare} files left: {said.splitlines()[0] if refused else 'connected'}")
        if during.text != "still here":
            wrong.append(f"{transport}: the healthy server was hurt: {during.text}")
        if refused and not said:
            wrong.append(f"{transport}: nobody says why it was refused")
        await client.disconnect("faulty")
        if not await client.connect("faulty"):
            wrong.append(f"{transport}: it does not come up afterwards: {client.status('faulty').error}")
    return wrong


async def main() -> int:
    wrong = [problem for transport in TRANSPORTS for spare in (0, 2, 4) for problem in await attempt(transport, spare)]
    print("\n".join(wrong) or "the healthy server went on, and every refused one came up once there was room")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
