"""P13: ten servers that hang at start keep nobody from using the others.

python -m tests.faults.promises.start [--hanging 10]

Prints after how many seconds the first tool of a healthy server could be called; ends with 1 if it was more than three.
"""

import argparse
import asyncio
import sys
import time

from squidbot import MCPClient, MCPConfig
from tests.faults.scene import stdio_entry
from tests.fixtures.running import until

PROMISED = 3.0


async def main(hanging: int) -> int:
    servers = {f"hangs-{number}": stdio_entry("hangs_at_start") for number in range(hanging)}
    healthy = {f"healthy-{number}": stdio_entry("behaves") for number in range(3)}
    began = time.perf_counter()
    async with MCPClient(MCPConfig.from_dict({"servers": {**servers, **healthy}})) as client:
        connecting = asyncio.create_task(client.connect_all())

        async def usable() -> bool:
            listed = {tool.server for tool in client.get_available_tools()}
            if not healthy.keys() <= listed:
                return False
            results = [await client.call_tool(name, "echo", {"text": "hello"}) for name in healthy]
            return all(result.text == "hello" for result in results)

        await until(usable, what="the healthy servers", within=30)
        took = time.perf_counter() - began
        states = sorted({client.status(name).state for name in servers})
        print(
            f"{len(healthy)} healthy servers beside {hanging} that hang ({', '.join(states)}): usable after {took:.2f} s"
        )
        began = time.perf_counter()
        await client.disconnect_all()
        await connecting
        print(f"all of them closed after {time.perf_counter() - began:.2f} s")
    return 0 if took < PROMISED else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hanging", type=int, default=10)
    sys.exit(asyncio.run(main(parser.parse_args().hanging)))
