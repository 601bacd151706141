"""P9: nobody gets another's answer: nine roles call at once, with equal ids, through one connection to one server.

python -m tests.faults.promises.crosstalk [--calls 10000] [--at-once 36]

Half of the callers are of the handshake era, half of the stateless one, at both paths; every call has the id 1 and a
text of its own. Prints how many answers were foreign, missing or failed; ends with 1 if any was.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import anyio
import httpx2
from loguru import logger

from squidbot.core.domain.shipped_roles import SHIPPED
from tests.gateway.mcp.house import House, house
from tests.gateway.mcp.test_bad_input import modern
from tests.gateway.mcp.test_sessions import begin, message

SERVER = "shared"


async def caller(
    opened: House, role: str, number: int, texts: "itertools.count[int]", left: int, seen: Counter[str]
) -> None:
    """Call again and again, and look whose answer it is."""
    server = SERVER if number % 2 else None
    name = "echo" if server else f"mcp_{SERVER}_echo"
    async with opened.http(role) as http:
        headers = await begin(http, opened.at(server)) if number % 4 < 2 else None
        for _ in range(left):
            text = f"{role} {number} {next(texts)}"
            seen[await ask(http, opened.at(server), name, text, headers)] += 1


async def ask(http: httpx2.AsyncClient, url: str, name: str, text: str, headers: dict[str, str] | None) -> str:
    """What came of one call."""
    if headers is None:
        answer = await http.post(url, **modern("tools/call", {"name": name, "arguments": {"text": text}}))
    else:
        body = message("tools/call", 1, name=name, arguments={"text": text})
        answer = await http.post(url, content=body, headers=headers)
    try:
        said = answer.json()["result"]["content"][0]["text"]
    except (KeyError, ValueError):
        return f"failed with status {answer.status_code}: {answer.text[:100]}"
    return "own" if said == text and answer.json()["id"] == 1 else "foreign"


async def main(calls: int, at_once: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SQUIDBOT_HOME"] = folder
        script = str(Path(__file__).with_name("delaying_server.py"))
        entry = {"command": sys.executable, "args": [script], "protocol": "legacy"}
        roles = {role: {"tools": {SERVER: ["*"]}} for role in SHIPPED}
        seen: Counter[str] = Counter()
        texts = itertools.count()
        async with house({SERVER: entry}, roles) as opened, anyio.create_task_group() as tasks:
            for number, role in zip(range(at_once), itertools.cycle(SHIPPED), strict=False):
                share = calls // at_once + (number < calls % at_once)
                tasks.start_soon(caller, opened, role, number, texts, share, seen)
    print(f"{seen.total():,} calls of {len(SHIPPED)} roles with equal ids: {json.dumps(dict(seen))}")
    return 0 if seen == Counter({"own": calls}) else 1


if __name__ == "__main__":
    logger.remove()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=36)
    options = parser.parse_args()
    sys.exit(anyio.run(main, options.calls, options.at_once))
