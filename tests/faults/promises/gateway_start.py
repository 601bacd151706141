"""P13: a gateway answers at once, and healthy servers can be used, however many others hang at start.

python -m tests.faults.promises.gateway_start [--hanging 10] [--patience 1]

Prints after how many seconds of its own the gateway answered `/healthz`, and after how many the tools of healthy servers
were listed and one was called. Both count from the moment it listens, and the whole from its start. Ends with 1 if it
was more than one second, or more than three; `--patience 5` allows a busy machine five times that.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from tests.faults.scene import stdio_entry
from tests.fixtures.gateway import call, gateway, settings_of, until_listed
from tests.fixtures.running import plain_entry

HEALTH, TOOLS = 1.0, 3.0


async def main(hanging: int, patience: float) -> int:
    servers = {f"hangs-{number}": stdio_entry("hangs_at_start") for number in range(hanging)}
    servers |= {f"healthy-{number}": plain_entry() for number in range(3)}
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, gateway(Path(folder), settings_of(servers)) as running:
        started = time.perf_counter()
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
            assert (await http.get(f"{running.url}/healthz")).status_code == 200
            health = time.perf_counter() - started
            token = await asyncio.to_thread(running.token)
            for number in range(3):
                await until_listed(http, running.url, token, f"mcp_healthy-{number}_echo")
            result = await call(http, running.url, token, "mcp_healthy-0_echo", text="hello")
            assert result["content"][0]["text"] == "hello", result
            tools = time.perf_counter() - started
        code = running.end()
    print(f"beside {hanging} servers that hang: listening {started - began:.2f} s after the start, /healthz answered")
    print(f"after {health:.2f} s more, three healthy servers listed and one called after {tools:.2f} s; exit {code}")
    return 0 if health < HEALTH * patience and tools < TOOLS * patience and code == 0 else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hanging", type=int, default=10)
    parser.add_argument("--patience", type=float, default=1.0)
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.hanging, options.patience)))
