"""P14: a gateway that is told to end answers what is under way, and leaves with 0.

python -m tests.faults.promises.gateway_stop [--runs 5] [--rate 200] [--signal TERM|INT|KILL] [--stuck]

The whole dose is `--runs 100`. Each run makes calls at a rate, some of which take their time, and sends the signal in the
midst of them. Every call that was sent must be answered or told that the gateway ends; every one that was answered must
be on record; nothing may be left. With KILL, what was answered must be on record, the rest may be cut off, and the next
start must be ready. With --stuck there is also a server that answers no call and does not end when asked, with calls
under way. Ends with 1 if any of it is not so.
"""

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

import httpx2

from squidbot.adapters.store.store import SQLStore
from squidbot.core.domain.audit import RecordFilter
from tests.faults.promises.leftovers import gone
from tests.fixtures.gateway import GatewayProcess, ask, gateway, result_of, settings_of, until_listed
from tests.fixtures.running import plain_entry

WITHIN = 10.0
STUCK = "trap '' TERM INT HUP; exec \"$@\""
EXIT = {signal.SIGTERM: 0, signal.SIGINT: 130, signal.SIGKILL: -9}


class Load:
    """Calls at a rate, and what became of each."""

    def __init__(self, url: str, token: str, *, stuck: bool) -> None:
        self.url, self.token, self.stuck = url, token, stuck
        self.outcomes: Counter[str] = Counter()
        self.answered: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, http: httpx2.AsyncClient, rate: float, ended: asyncio.Event) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            tool = "mcp_slow_echo" if number % 40 == 0 else "mcp_plain_echo"
            tool = "mcp_stuck_echo" if self.stuck and number % 40 == 20 else tool
            task = asyncio.create_task(self._one(http, tool, f"{uuid.uuid4().hex}"))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(1 / rate)
        await asyncio.gather(*self._tasks)

    async def _one(self, http: httpx2.AsyncClient, tool: str, text: str) -> None:
        try:
            answer = await ask(http, self.url, self.token, "tools/call", {"name": tool, "arguments": {"text": text}})
        except httpx2.ConnectError:
            self.outcomes["not taken"] += 1
            return
        except httpx2.HTTPError as error:
            self.outcomes[f"cut off ({type(error).__name__})"] += 1
            return
        result = result_of(answer)
        if answer.status_code == 503:
            self.outcomes["told that it ends"] += 1
        elif result is not None and not result.get("isError") and result["content"][0]["text"] == text:
            self.outcomes["answered"] += 1
            self.answered.add(text)
        elif result is not None and result.get("isError"):
            self.outcomes["failed"] += 1
        else:
            self.outcomes[f"answered {answer.status_code}"] += 1


async def recorded(running: GatewayProcess) -> set[str]:
    """What the record has as answered."""
    async with SQLStore(None, state=running.state) as store:
        found = [record async for record in store.records(RecordFilter()) if record.outcome == "ok"]
        verification = await store.verify()
    assert verification.ok, verification
    return {json.loads(record.arguments).get("text", "") for record in found if record.tool == "echo"}


async def one(folder: Path, rate: float, number: signal.Signals, chance: random.Random, *, stuck: bool) -> list[str]:
    """One run; what was wrong with it."""
    mark = uuid.uuid4().hex
    marked = {"env": {"FAULT_MARK": mark}}
    servers = {"plain": {**plain_entry(), **marked}, "slow": {**plain_entry("--each", "0.1"), **marked}}
    if stuck:
        plain = plain_entry("--each", "60")
        servers["stuck"] = {**marked, "command": "sh", "args": ["-c", STUCK, "sh", plain["command"], *plain["args"]]}
    wrong: list[str] = []
    with gateway(folder, settings_of(servers)) as running:
        token = await asyncio.to_thread(running.token)
        limits = httpx2.Limits(max_connections=200, max_keepalive_connections=50)
        async with httpx2.AsyncClient(trust_env=False, timeout=30, limits=limits) as http:
            for tool in (f"mcp_{name}_echo" for name in servers):
                await until_listed(http, running.url, token, tool)
            load, ended = Load(running.url, token, stuck=stuck), asyncio.Event()
            calling = asyncio.create_task(load.run(http, rate, ended))
            await asyncio.sleep(chance.uniform(0.5, 1.5))
            began = time.monotonic()
            running.process.send_signal(number)
            code = await asyncio.to_thread(running.process.wait, 40)
            took = time.monotonic() - began
            ended.set()
            await calling
        wrong += [f"{count} calls {what}" for what, count in load.outcomes.items() if _is_wrong(what, number)]
        if code != EXIT[number]:
            wrong.append(f"exit {code}: {running.said()[-500:]}")
        if took > WITHIN:
            wrong.append(f"took {took:.1f} s")
        wrong += await asyncio.to_thread(gone, mark)
        missing = load.answered - await recorded(running)
        if missing:
            wrong.append(f"{len(missing)} answered calls are not on record")
    print(f"{number.name}: exit {code} after {took:.2f} s; {dict(load.outcomes)}; wrong: {wrong or 'nothing'}")
    return wrong


def _is_wrong(what: str, number: signal.Signals) -> bool:
    fine = ("answered", "told that it ends", "not taken", *(("failed",) if number is signal.SIGKILL else ()))
    return what not in fine and not (number is signal.SIGKILL and what.startswith("cut off"))


async def main(runs: int, rate: float, number: signal.Signals, *, stuck: bool) -> int:
    chance = random.Random(14)
    wrong: list[str] = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            wrong += await one(Path(folder), rate, number, chance, stuck=stuck)
    print(f"{runs} runs of {number.name}: {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--signal", choices=["TERM", "INT", "KILL"], default="TERM")
    parser.add_argument("--stuck", action="store_true")
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.runs, options.rate, signal.Signals[f"SIG{options.signal}"], stuck=options.stuck)))
