"""Two hundred servers, fifty of them bad, are up in ten seconds, with every tool of the good ones.

python -m tests.faults.promises.crowd [--servers 200] [--bad 50]

Prints after how many seconds all healthy servers could be used; ends with 1 if that was late, or a tool is missing.
"""

import argparse
import asyncio
import itertools
import sys
import time

from squidbot import MCPClient, MCPConfig
from tests.faults.scene import stdio_entry
from tests.fixtures.running import plain_entry, until

PROMISED = 10.0
BAD = (
    ("hangs_at_start", ""),
    ("exits_at_start", "1"),
    ("bad_initialize", "null"),
    ("wrong_version", "unknown"),
    ("hangs_in_list", ""),
    ("endless_line_at_start", ""),
    ("dies_after_initialize", ""),
    ("bad_list", "error"),
    ("stderr_flood_at_start", ""),
    ("list_changed_loop", "flapping"),
)


async def main(servers: int, bad: int) -> int:
    faulty = {f"bad-{n}": stdio_entry(*fault) for n, fault in zip(range(bad), itertools.cycle(BAD), strict=False)}
    healthy = {f"good-{n}": {**plain_entry(), "startup_timeout": 30} for n in range(servers - bad)}
    began = time.perf_counter()
    async with MCPClient(MCPConfig.from_dict({"servers": {**faulty, **healthy}})) as client:
        connecting = asyncio.create_task(client.connect_all())

        def ready() -> bool:
            return all(client.status(name).state == "ready" for name in healthy)

        await until(ready, what="the healthy servers", within=60)
        took = time.perf_counter() - began
        tools = sum(len(client.get_available_tools(name)) for name in healthy)
        results = await asyncio.gather(*(client.call_tool(name, "echo", {"text": name}) for name in healthy))
        right = sum(result.text == name for name, result in zip(healthy, results, strict=True))
        print(
            f"{len(healthy)} healthy servers beside {bad} bad ones: all ready after {took:.1f} s, {tools} tools, ",
            end="",
        )
        print(f"{right} of {len(healthy)} calls answered")
        for name, result in zip(healthy, results, strict=True):
            if result.text != name:
                print(f"    {name}: {result.text}")
        began = time.perf_counter()
        await client.disconnect_all()
        await connecting
        print(f"all of them closed after {time.perf_counter() - began:.1f} s")
    return 0 if took < PROMISED and tools == 2 * len(healthy) and right == len(healthy) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--bad", type=int, default=50)
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.servers, options.bad)))
