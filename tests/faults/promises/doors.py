"""Ways to make a recorded call, one as good as another to the programs that hold the audit trail to its promises.

A door is opened on a state folder and a database, and is given what happens when a call reaches its server. Behind it
is a function that makes the call of a given name, and raises where it is refused; the name must come back in the
record's arguments as `{"name": NAME}`. `--door MODULE:FUNCTION` names another one.
"""

import importlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from squidbot.adapters.limits.memory import MemoryRateLimiter
from squidbot.adapters.registry.memory import InMemoryToolRegistry
from squidbot.adapters.store.store import SQLStore
from squidbot.adapters.system.clock import SystemClock
from squidbot.core.domain.content import TextContent
from squidbot.core.domain.limits import Limit
from squidbot.core.domain.redaction import Redactor
from squidbot.core.domain.roles import MCPToolMapper
from squidbot.core.domain.tools import ToolResult
from squidbot.core.services.door import AgentMCPService, Parts
from squidbot.core.services.permissions import Permissions
from squidbot.core.services.recording import Recorder
from tests.fakes.door import FakeSchemas, FakeSource, FakeTool
from tests.fixtures.trail import end, intent

Call: TypeAlias = Callable[[str], Awaitable[None]]
Effect: TypeAlias = Callable[[str], None]
Door: TypeAlias = Callable[[Path, str | None, Effect], AbstractAsyncContextManager[Call]]

STORE = "tests.faults.promises.doors:store"
HASTY = "tests.faults.promises.doors:hasty"


def store(state: Path, url: str | None, effect: Effect) -> AbstractAsyncContextManager[Call]:
    """The store alone: an intent, the effect, the end."""
    return _door(SQLStore(url, state=state), effect)


def hasty(state: Path, url: str | None, effect: Effect) -> AbstractAsyncContextManager[Call]:
    """The same, but it soon gives up on a lock."""
    return _door(SQLStore(url, state=state, lock_timeout=0.5), effect)


@asynccontextmanager
async def _door(opened: SQLStore, effect: Effect) -> AsyncIterator[Call]:
    async with opened as kept:

        async def call(name: str) -> None:
            begun = intent(arguments=json.dumps({"name": name}))
            await kept.begin(begun)
            effect(name)
            await kept.close(end(begun))

        yield call


@asynccontextmanager
async def guarded(state: Path, url: str | None, effect: Effect) -> AsyncIterator[Call]:
    """The guarded door itself, with everything but the servers: their place is taken by the effect."""
    clock, registry = SystemClock(), InMemoryToolRegistry()

    def act(arguments: Mapping[str, Any]) -> ToolResult:
        effect(arguments["name"])
        return ToolResult((TextContent("done"),))

    registry.replace("git", [FakeTool("git", "git_push", act)])
    async with SQLStore(url, state=state, lock_timeout=0.5) as kept:
        parts = Parts(
            source=FakeSource(["git"]),
            registry=registry,
            permissions=Permissions(MCPToolMapper(), kept, clock=clock),
            schemas=FakeSchemas(),
            limiter=MemoryRateLimiter([Limit("backend_developer", rate=1e9, burst=10**9)], clock=clock),
            recorder=Recorder(kept, clock=clock, redactor=Redactor()),
            grants=kept,
            read_only=lambda _: False,
        )
        door = AgentMCPService(parts)

        async def call(name: str) -> None:
            await door.execute_tool("backend_developer", "git", "git_push", {"name": name})

        yield call


def find(name: str) -> Door:
    """The door that an option names."""
    module, _, function = name.partition(":")
    door: Door = getattr(importlib.import_module(module), function)
    return door
