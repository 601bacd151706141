"""P7 on the gateway: nothing is left of it and its servers, however it ends.

python -m tests.faults.promises.gateway_leftovers [--stops 2] [--kills 2] [--at-once 1]

The whole dose is `--stops 1000 --kills 200 --at-once 4`. Each time a gateway is started with five servers that end badly, and
told to end, or killed (-9). Prints what was left within five seconds, processes with our mark; ends with 1 if anything was.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
import uuid
from pathlib import Path

from tests.faults.promises.leftovers import gone, repeated, settings
from tests.fixtures.gateway import GatewayProcess, gateway, settings_of

READY = 30.0


def ended(number: signal.Signals, expected: int) -> list[str]:
    """Start a gateway, end it; what is left afterwards."""
    mark = uuid.uuid4().hex
    servers = settings(mark)["servers"]
    with tempfile.TemporaryDirectory() as folder, gateway(Path(folder), settings_of(servers)) as running:
        missing = all_up(running, len(servers))
        code = running.end(number)
        wrong = [f"exit {code}: {running.said()[-500:]}"] if code != expected else []
    return missing + wrong + gone(mark, running.process.pid)


def all_up(running: GatewayProcess, count: int) -> list[str]:
    """Wait until every server is ready: one that does not run yet cannot be left."""
    deadline = time.monotonic() + READY
    while time.monotonic() < deadline:
        states = [server["state"] for server in running.api("GET", "/servers")]
        if states.count("ready") == count:
            return []
        time.sleep(0.05)
    return [f"only {states} came up"]


async def main(stops: int, kills: int, at_once: int) -> int:
    left = await repeated("stops", stops, at_once, lambda: asyncio.to_thread(ended, signal.SIGTERM, 0))
    left += await repeated("kills", kills, at_once, lambda: asyncio.to_thread(ended, signal.SIGKILL, -9))
    print(f"\n{stops} stops and {kills} kills of a gateway with five servers that end badly: {len(left)} left")
    for one in left[:10]:
        print(f"    {one}")
    return 1 if left else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stops", type=int, default=2)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.stops, options.kills, options.at_once)))
