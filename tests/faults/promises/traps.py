"""P15: nobody is led to a place that the settings do not name.

python -m tests.faults.promises.traps [--at-once 4]

Every fault that points somewhere else (sign-in metadata, redirects, endpoints, schemas, links, icons) is played with a trap on
loopback as its target; every spelling of an inner address is held against the resolver, without any traffic.
Prints the visits to the traps and the addresses that passed; ends with 1 if there was one, or a lure was not played to its end.
"""

import argparse
import asyncio
import sys

from squidbot.adapters.mcp.network import Refused, public_address
from tests.faults.cases import EVERYTHING
from tests.faults.run import judged

LURES = (
    "hostile_metadata",
    "redirects",
    "odd_redirects",
    "odd_post-redirects",
    "endpoint",
    "hostile_schema-remote",
    "hostile_schema-file",
    "points_elsewhere",
)
INNER = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "localhost",
    "0.0.0.0",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "::ffff:169.254.169.254",
    "fe80::1",
    "fd00:ec2::254",
    "fc00::1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "192.0.0.192",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "127.0.1",
    "0x7f.1",
    "\u2460\u2461\u2466.0.0.1",
    "127\u30020\u30020\u30021",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "0:0:0:0:0:ffff:7f00:1",
    "::1%lo",
    "fe80::5efe:7f00:1",
    "2001:0:7f00:1::",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.170.2",
    "198.18.0.1",
    "240.0.0.1",
    "fec0::1",
    "ff02::1",
]


async def passed(host: str) -> bool:
    """Whether an inner address would be asked."""
    try:
        await public_address(host, 443)
    except Refused:
        return False
    except Exception:
        return False  # a spelling that this resolver does not know leads nowhere
    return True


async def main(at_once: int) -> int:
    cells = [cell for cell in EVERYTHING if str(cell).startswith(LURES)]
    verdicts = await judged(cells, at_once)
    visits = {name: problem for name, verdict in verdicts.items() for problem in verdict.broken if "trap" in problem}
    unplayed = [f"{name}: {verdict.broken[0]}" for name, verdict in verdicts.items() if verdict.outcome == "lost"]
    through = [host for host in INNER if await passed(host)]
    print(f"{len(cells)} lures: {len(visits)} led to the trap, {len(unplayed)} could not be played; ", end="")
    print(f"{len(INNER)} spellings of inner addresses: {len(through)} passed")
    for problem in [*(f"{name}: {problem}" for name, problem in visits.items()), *unplayed, *through]:
        print(f"    {problem}")
    return 1 if visits or unplayed or through else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, default=4)
    sys.exit(asyncio.run(main(parser.parse_args().at_once)))
