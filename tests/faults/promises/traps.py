"""P15: nobody is led to a place that the settings do not name.

python -m tests.faults.promises.traps

Every fault that points somewhere else (sign-in metadata, redirects, endpoints, schemas) is played with a trap on
loopback as its target; every spelling of an inner address is held against the resolver, without any traffic.
Prints the visits to the traps and the addresses that passed; ends with 1 if there was one.
"""

import asyncio
import sys

from squidbot.adapters.mcp.network import Refused, public_address
from tests.faults.cases import EVERYTHING
from tests.faults.judge import judge

LURES = ("hostile_metadata", "redirects", "endpoint", "hostile_schema-remote", "hostile_schema-file")
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


async def main() -> int:
    cells = [cell for cell in EVERYTHING if str(cell).startswith(LURES)]
    broken: list[str] = []
    hits = 0
    for cell in cells:
        verdict = await judge(cell)
        visits = [problem for problem in verdict.broken if "trap" in problem]
        hits += len(visits)
        broken += [f"{cell}: {problem}" for problem in visits]
    through = [host for host in INNER if await passed(host)]
    print(
        f"{len(cells)} lures: {hits} visits to the trap; {len(INNER)} spellings of inner addresses: {len(through)} passed"
    )
    for problem in [*broken, *through]:
        print(f"    {problem}")
    return 1 if hits or through else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
