"""How costs grow with the number of tools, of servers and of connected clients: squidbot beside itself.

python -m benchmarks.scale [--tools 10 1000 10000] [--servers 1 10 50] [--clients 1 100 1000] [--seconds 3]

`a call` is what one caller waits for at the gateway with everything on, whatever else is there; `decide` and `search` are
measured in one process. Needs wrk (apt install wrk).
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

from loguru import logger

from benchmarks.door import ROLE, door_in_memory
from benchmarks.gateways.__main__ import measure, resident
from benchmarks.gateways.subjects import ECHO, ROOT, Running, squidbot
from benchmarks.keeping import keep
from benchmarks.many_tools import tool
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.tools import ToolId
from squidbot.core.services.tool_search import ToolSearch
from tests.fakes.door import FakeTool

LARGEST = 2_000
"""Tools of one server; more of them are spread over several."""
PATIENCE = 60.0
Row = dict[str, float]


def many(tools: int) -> dict[str, Any]:
    """The echo server, and as many that have `tools` tools together."""
    counts = [min(LARGEST, tools - begin) for begin in range(0, tools, LARGEST)]
    program = str(ROOT / "benchmarks/many_tools.py")
    command = {"command": sys.executable}
    return ECHO | {
        f"many{number}": {**command, "args": ["-I", "-S", program, str(count)]} for number, count in enumerate(counts)
    }


def ask(found: Running, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], int, float]:
    """The result of a request, its size, and the milliseconds until all of it was there."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **found.headers}
    began = time.perf_counter()
    with urllib.request.urlopen(urllib.request.Request(found.url, body, headers), timeout=30) as response:
        text = response.read()
    return json.loads(text)["result"], len(text), (time.perf_counter() - began) * 1000


def listed(found: Running) -> tuple[int, int, float]:
    """How many tools all pages have, their bytes, and the milliseconds that all of them took."""
    tools, size, took, cursor = 0, 0, 0.0, None
    while True:
        page, page_size, page_took = ask(found, "tools/list", {"cursor": cursor} if cursor else {})
        tools, size, took, cursor = (
            tools + len(page["tools"]),
            size + page_size,
            took + page_took,
            page.get("nextCursor"),
        )
        if not cursor:
            return tools, size, took


@contextmanager
def gateway(servers: dict[str, Any], tools: int) -> Iterator[Running]:
    """A gateway whose servers have all been listed."""
    with squidbot(servers).running() as found:
        deadline = time.monotonic() + PATIENCE
        while (known := listed(found)[0]) != tools:
            if time.monotonic() > deadline:
                raise SystemExit(f"after {PATIENCE:g} s {known} tools are listed, and not {tools}")
            time.sleep(0.2)
        yield found


def calls(found: Running, seconds: int) -> Row:
    """What one caller waits for, and what sixteen get done; wrong answers end the run."""
    measure(found, 16, 1)  # warm
    alone, crowd = measure(found, 1, seconds), measure(found, 16, seconds)
    if wrong := alone["wrong"] + crowd["wrong"] + alone["errors"] + crowd["errors"]:
        raise SystemExit(f"{wrong:.0f} answers were wrong")
    return {"p50_ms": alone["p50_ms"], "calls": crowd["calls"]}


async def inside(count: int) -> Row:
    """Microseconds of a decision, milliseconds of a list and of a search, of so many tools in one process."""
    tools = [FakeTool("git", str(tool(number)["name"])) for number in range(count)]
    async with AsyncExitStack() as stack:
        service = await door_in_memory(stack, None, tools)
        caller, which = Caller(ROLE), ToolId("git", "git_push")
        searching = ToolSearch(service.tools(caller))
        return {
            "decide_us": 1e6 * per_call(lambda: service.permissions.decide(caller, which, {}), 5_000),
            "filter_ms": 1e3 * per_call(lambda: service.tools(caller), 20),
            "index_ms": 1e3 * per_call(lambda: ToolSearch(service.tools(caller)), 3),
            "search_ms": 1e3 * per_call(lambda: searching.find("search the invoice of a customer"), 20),
        }


def per_call(work: Callable[[], object], times: int) -> float:
    """Seconds, the median of five runs of so many."""
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(times):
            work()
        taken.append((time.perf_counter() - began) / times)
    return statistics.median(taken)


class Client:
    """One client of the handshake era: a session, and an open stream on which it would hear of changes."""

    async def connect(self, found: Running) -> None:
        self._found, self._url = found, urlsplit(found.url)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "idle", "version": "1"}}
        head = await self._post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}, {})
        session = next(line.split(":", 1)[1].strip() for line in head if line.lower().startswith("mcp-session-id:"))
        self._session = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-06-18"}
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, self._session)
        self._reader, self._writer = await self._open("GET", b"", {**self._session, "Accept": "text/event-stream"})
        status = await self._reader.readline()
        if b" 200 " not in status:
            raise SystemExit(f"a stream was refused: {status!r}")

    async def close(self) -> None:
        self._writer.close()

    async def _post(self, message: dict[str, Any], headers: dict[str, str]) -> list[str]:
        kind = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        body = json.dumps(message).encode()
        reader, writer = await self._open("POST", body, {**kind, **headers, "Connection": "close"})
        answer = (await reader.read()).decode()
        writer.close()
        return answer.split("\r\n\r\n")[0].split("\r\n")

    async def _open(
        self, method: str, body: bytes, headers: dict[str, str]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self._url.hostname, self._url.port)
        all_headers = {
            "Host": self._url.netloc,
            "Authorization": self._found.headers["Authorization"],
            "Content-Length": str(len(body)),
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
        writer.write(f"{method} {self._url.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await writer.drain()
        return reader, writer


async def connected(found: Running, count: int, seconds: int) -> Row:
    """Memory and calls with so many clients that wait."""
    before = resident(found.pid)
    clients = [Client() for _ in range(count)]
    for client in clients:
        await client.connect(found)
    await asyncio.sleep(1)
    row = {"memory_mb": resident(found.pid), "kb_each": (resident(found.pid) - before) * 1024 / count}
    row |= await asyncio.to_thread(calls, found, seconds)
    for client in clients:
        await client.close()
    return row


def shown(title: str, rows: dict[int, Row]) -> dict[str, Row]:
    columns = list(next(iter(rows.values())))
    print(f"\n{title:>8}" + "".join(f"{column:>14}" for column in columns))
    for count, row in rows.items():
        print(f"{count:>8,}" + "".join(f"{row[column]:>14,.2f}" for column in columns), flush=True)
    return {str(count): row for count, row in rows.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--servers", type=int, nargs="+", default=[1, 10, 50])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 100, 1_000])
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    logger.remove()

    by_tools: dict[int, Row] = {}
    for count in options.tools:
        row = asyncio.run(inside(count))
        with gateway(many(count), count + 2) as found:
            took = [listed(found) for _ in range(5)]
            row |= {"list_ms": statistics.median(one[2] for one in took), "list_kb": took[0][1] / 1024}
            row |= {**calls(found, options.seconds), "memory_mb": resident(found.pid)}
        by_tools[count] = row
    by_servers: dict[int, Row] = {}
    for count in options.servers:
        more = {f"echo{number}": ECHO["echo"] for number in range(1, count)}
        with gateway(ECHO | more, 2 * count) as found:
            by_servers[count] = {"memory_mb": resident(found.pid), **calls(found, options.seconds)}
    by_clients: dict[int, Row] = {}
    for count in options.clients:
        with gateway(ECHO, 2) as found:
            measure(found, 16, 1)  # what the first calls take for good is no client's
            by_clients[count] = asyncio.run(connected(found, count, options.seconds))
    keep(
        "scale",
        {
            "tools": shown("tools", by_tools),
            "servers": shown("servers", by_servers),
            "clients": shown("clients", by_clients),
        },
    )


if __name__ == "__main__":
    main()
