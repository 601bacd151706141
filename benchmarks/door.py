"""What the guarded door costs: the same calls of a tool in memory with and without the record.

python -m benchmarks.door [--calls 20000] [--callers 64]

Roles, schemas, limits, redaction and metrics are on in both; the one has a log that keeps nothing, the other SQLite with
every intent and every end on disk. Both run in one process, one after the other, three rounds each.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from loguru import logger

from benchmarks.keeping import keep
from squidbot.adapters.limits.memory import MemoryRateLimiter
from squidbot.adapters.registry.memory import InMemoryToolRegistry
from squidbot.adapters.schemas.checker import JSONSchemaCheck
from squidbot.adapters.store.store import SQLStore
from squidbot.adapters.system.clock import SystemClock
from squidbot.adapters.telemetry.metrics import Metrics
from squidbot.core.domain.limits import Limit
from squidbot.core.domain.redaction import Redactor
from squidbot.core.domain.roles import Grant, MCPToolMapper, Role
from squidbot.core.ports import ToolRegistry, ToolSource
from squidbot.core.services.door import AgentMCPService, Parts
from squidbot.core.services.permissions import Permissions
from squidbot.core.services.recording import Recorder
from tests.fakes.door import FakeAuditLog, FakeGrants, FakeSource, FakeTool

ROLE = "bench"
ROUNDS = 3
SCHEMA = {"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]}


class Forgetful(FakeAuditLog):
    """A log that keeps nothing."""

    async def begin(self, intent: object) -> None: ...

    async def close(self, record: object) -> None: ...


async def door(
    stack: AsyncExitStack, folder: Path | None, *, source: ToolSource, registry: ToolRegistry
) -> AgentMCPService:
    """A door before these tools, all of which the role `bench` may use; with a folder, with a record in it."""
    clock = SystemClock()
    log = Forgetful() if folder is None else await stack.enter_async_context(SQLStore(None, state=folder))
    grants = FakeGrants(FakeAuditLog())
    limiter = MemoryRateLimiter([Limit(ROLE, rate=1e9, burst=10**9)], clock=clock)
    recorder = Recorder(log, clock=clock, redactor=Redactor(["s3cr3t-value-of-a-server"]), observers=[Metrics()])
    role = Role(ROLE, grants=tuple(Grant(server, "*") for server in source.server_names()))
    schemas = JSONSchemaCheck()
    stack.push_async_callback(schemas.aclose)
    return AgentMCPService(
        Parts(
            source=source,
            registry=registry,
            permissions=Permissions(MCPToolMapper({ROLE: role}), grants, clock=clock),
            schemas=schemas,
            limiter=limiter,
            recorder=recorder,
            grants=grants,
            read_only=lambda _: False,
        )
    )


async def door_in_memory(stack: AsyncExitStack, folder: Path | None, more: Sequence[FakeTool] = ()) -> AgentMCPService:
    """A door before one tool of this process, and more beside it."""
    tool = FakeTool("git", "git_push", parameters=SCHEMA)
    tool.calls = _Nothing()
    registry = InMemoryToolRegistry()
    registry.replace("git", [tool, *more])
    return await door(stack, folder, source=FakeSource(["git"]), registry=registry)


class _Nothing(list):  # type: ignore[type-arg]
    """Takes note of nothing, so that a long run does not grow."""

    def append(self, _: object) -> None: ...


async def round_of(service: AgentMCPService, calls: int, callers: int) -> tuple[float, list[float]]:
    """Calls a second, and the milliseconds of each."""
    taken: list[float] = []

    async def caller() -> None:
        for _ in range(calls // callers):
            began = time.perf_counter()
            await service.execute_tool(ROLE, "git", "git_push", {"branch": "feature/x"})
            taken.append((time.perf_counter() - began) * 1000)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return len(taken) / (time.perf_counter() - began), sorted(taken)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--callers", type=int, default=64)
    options = parser.parse_args()
    logger.remove()
    kept: dict[str, Any] = {}
    print(f"{'':<16}{'callers':>8}{'calls/s':>12}{'p50 ms':>9}{'p99 ms':>9}")
    for callers in (1, options.callers):
        rates: dict[str, list[float]] = {"without record": [], "with record": []}
        middles: dict[str, list[float]] = {name: [] for name in rates}
        for _ in range(ROUNDS):
            for name, found in rates.items():
                with tempfile.TemporaryDirectory() as folder:
                    async with AsyncExitStack() as stack:
                        service = await door_in_memory(stack, Path(folder) if name == "with record" else None)
                        await round_of(service, 200, callers)
                        rate, taken = await round_of(service, options.calls if callers > 1 else 2_000, callers)
                found.append(rate)
                middles[name].append(taken[len(taken) // 2])
                p99 = taken[len(taken) * 99 // 100]
                print(f"{name:<16}{callers:>8}{rate:>12,.0f}{taken[len(taken) // 2]:>9.3f}{p99:>9.3f}")
        added = statistics.median(middles["with record"]) - statistics.median(middles["without record"])
        ratio = statistics.median(rates["with record"]) / statistics.median(rates["without record"])
        print(f"{callers} callers: {ratio:.2f} times the calls, {added:+.3f} ms at the median\n")
        kept[f"{callers} callers"] = {"calls": rates, "p50_ms": middles}
    keep("door", kept)


if __name__ == "__main__":
    asyncio.run(main())
