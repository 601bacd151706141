"""How long a command takes from nothing: beside an empty Python, and beside the least SDK script that does the same.

python -m benchmarks.cold [--rounds 9]

Each command is run once before it counts, so that all have their files in memory and squidbot its last list. The
ratio is taken round by round, with the two commands one after the other.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.keeping import keep

ROOT = Path(__file__).resolve().parents[1]
SERVER = [sys.executable, "-I", "-S", str(ROOT / "tests/fixtures/plain.py")]
SDK = """
import anyio, sys
from mcp import Client, StdioServerParameters
async def main():
    async with Client(StdioServerParameters(command=sys.argv[1], args=sys.argv[2:]), mode="legacy") as client:
        {work}
anyio.run(main)
"""
LIST = "print([tool.name for tool in (await client.list_tools()).tools])"
CALL = "print((await client.call_tool('echo', {'text': 'hello'})).content[0].text)"


def seconds(command: list[str], environ: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ, timeout=60)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "squidbot.json")
        entry = {"command": SERVER[0], "args": SERVER[1:], "protocol": "legacy", "read_only": ["*"]}
        settings.write_text(json.dumps({"tools": {"mcp_servers": {"echo": entry}}}))
        environ = {**os.environ, "SQUIDBOT_HOME": folder, "SQUIDBOT_CONFIG": str(settings)}
        squidbot = [sys.executable, "-m", "squidbot"]
        nothing = ("python -c pass", [sys.executable, "-c", "pass"])
        listing = ("SDK script that lists", [sys.executable, "-c", SDK.format(work=LIST), *SERVER])
        calling = ("SDK script that calls", [sys.executable, "-c", SDK.format(work=CALL), *SERVER])
        pairs = (
            (["--version"], nothing),
            (["--help"], nothing),
            (["tools", "list"], listing),
            (["tools", "call", "mcp_echo_echo", "text=hello"], calling),
        )
        kept: dict[str, Any] = {}
        print(f"{rounds} rounds, median (lowest to highest)\n")
        for arguments, (name, beside) in pairs:
            command = [*squidbot, *arguments]
            for warm in (command, beside):
                seconds(warm, environ)
            found = [(seconds(command, environ), seconds(beside, environ)) for _ in range(rounds)]
            kept[" ".join(arguments)] = {"beside": name, "seconds": found}
            ratios = [mine / theirs for mine, theirs in found]
            print(
                f"squidbot {' '.join(arguments):<40} {statistics.median(row[0] for row in found) * 1e3:7.0f} ms   "
                f"{name}: {statistics.median(row[1] for row in found) * 1e3:5.0f} ms   "
                f"{statistics.median(ratios):5.2f} x ({min(ratios):.2f} to {max(ratios):.2f})",
                flush=True,
            )
        keep("cold", kept)


if __name__ == "__main__":
    main()
