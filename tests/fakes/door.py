"""A guarded door over parts that remember what was asked of them: one fake per port."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from squidbot.adapters.registry.memory import InMemoryToolRegistry
from squidbot.core.domain.audit import GrantChange, Grants, Intent, RecordFilter, ToolExecution
from squidbot.core.domain.content import TextContent
from squidbot.core.domain.errors import MCPConnectionError, NotRecorded, Problem, RateLimited
from squidbot.core.domain.prompts import (
    PromptDefinition,
    PromptMessage,
    RenderedPrompt,
    ResourceContents,
    ResourceDefinition,
)
from squidbot.core.domain.redaction import Redactor
from squidbot.core.domain.roles import MCPToolMapper
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.tools import ToolDefinition, ToolId, ToolResult
from squidbot.core.ports import Counterpart, OnProgress, Permit
from squidbot.core.services.door import AgentMCPService, Parts
from squidbot.core.services.permissions import Permissions
from squidbot.core.services.recording import Recorder


class FakeClock:
    """Satisfies `Clock`: time passes only when somebody says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def timestamp(self) -> str:
        return f"2026-11-18T10:00:00.{int(self.now):06d}Z"

    def time(self) -> float:
        return 1_790_000_000 + self.now

    def monotonic(self) -> float:
        return self.now


@dataclass
class FakeAuditLog:
    """Satisfies `AuditLog`; `broken` refuses every record."""

    begun: list[Intent] = field(default_factory=list)
    closed: list[ToolExecution] = field(default_factory=list)
    broken: bool = False

    async def begin(self, intent: Intent) -> None:
        self._check()
        self.begun.append(intent)

    async def close(self, record: ToolExecution) -> None:
        self._check()
        self.closed.append(record)

    async def records(self, wanted: RecordFilter, *, newest: int | None = None) -> AsyncIterator[ToolExecution]:
        self._check()
        for record in self.closed[-newest:] if newest is not None else self.closed:
            yield record

    def _check(self) -> None:
        if self.broken:
            raise NotRecorded("the disk is full")


@dataclass
class FakeGrants:
    """Satisfies `GrantStore`."""

    log: FakeAuditLog
    changes: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    version: int = 0

    async def load(self) -> Grants:
        changes = [GrantChange(*key, enabled) for key, enabled in self.changes.items()]
        return Grants(tuple(changes), self.version)

    async def change(self, *, role: str, server: str, tool: str, enabled: bool, record: ToolExecution) -> Grants:
        await self.log.close(record)
        self.changes[role, server, tool] = enabled
        self.version += 1
        return await self.load()


@dataclass
class FakeLimiter:
    """Satisfies `RateLimiter`: so many calls, and no more."""

    left: int = 1_000_000
    held: int = 0

    async def acquire(self, role: str, tool: ToolId, *, changes: bool = True) -> Permit:
        if self.left == 0:
            raise RateLimited(f"role {role!r} makes too many calls", retry_after=2.5)
        self.left -= 1
        self.held += 1
        return self

    async def release(self) -> None:
        self.held -= 1


class FakeTool:
    """Satisfies `ToolPort`: counts what reaches it."""

    def __init__(
        self,
        server: str,
        tool: str,
        answer: Callable[[Mapping[str, Any]], ToolResult] | None = None,
        *,
        fixed: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.definition = ToolDefinition(
            server, tool, f"mcp_{server}_{tool}", parameters=parameters or {}, fixed=fixed or {}
        )
        self.calls: list[Mapping[str, Any]] = []
        self.progress: Sequence[tuple[float, float | None, str | None]] = ()
        """What it says of each call meanwhile."""
        self.waits_for: anyio.Event | None = None
        """Without it there is no answer."""
        self._answer = answer

    async def execute(
        self,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        counterpart: Counterpart | None = None,
    ) -> ToolResult:
        self.calls.append(arguments)
        if on_progress is not None:
            for step in self.progress:
                await on_progress(*step)
        if self.waits_for is not None:
            await self.waits_for.wait()
        return self._answer(arguments) if self._answer else ToolResult((TextContent("done"),))


class FakeSchemas:
    """Satisfies `SchemaCheck`: only what is required is looked at."""

    async def problems(self, schema: Mapping[str, Any], value: Any) -> Sequence[Problem]:
        return [Problem(name, "is needed") for name in schema.get("required", ()) if name not in value]

    async def aclose(self) -> None: ...


@dataclass
class FakeSource:
    """Satisfies `ToolSource`; `away` are servers that cannot be reached."""

    servers: list[str] = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    subscriptions: list[tuple[str, bool]] = field(default_factory=list)

    def server_names(self) -> Sequence[str]:
        return self.servers

    def connection(self, server_name: str) -> object:
        return f"connection of {server_name}"

    def unavailable(self, server_name: str) -> str | None:
        return "it exited with code 9" if server_name in self.away else None

    async def connect(self, server_name: str) -> bool:
        return server_name in self.servers and server_name not in self.away

    async def disconnect(self, server_name: str) -> None: ...

    def status(self, server_name: str) -> ServerStatus:
        return ServerStatus(server_name, "stdio", "ready", instructions=f"Use {server_name} with care.")

    def get_available_tools(self, server_name: str | None = None) -> list[ToolDefinition]:
        return []

    async def call_tool(self, *args: Any, **kwargs: Any) -> ToolResult:
        raise AssertionError("the door calls tools by the registry")

    def get_prompts(self, server_name: str | None = None) -> list[PromptDefinition]:
        return [PromptDefinition(server, "greet", f"mcp_{server}_greet") for server in self.servers]

    async def render_prompt(
        self,
        server_name: str,
        prompt_name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        counterpart: Counterpart | None = None,
    ) -> RenderedPrompt:
        self._ask(server_name)
        return RenderedPrompt("", (PromptMessage("user", TextContent("Hello")),))

    def get_resources(self, server_name: str | None = None) -> list[ResourceDefinition]:
        return [ResourceDefinition(server, f"demo://{server}", server) for server in self.servers]

    async def read_resource(
        self, server_name: str, uri: str, *, counterpart: Counterpart | None = None
    ) -> ResourceContents:
        self._ask(server_name)
        return ResourceContents((TextContent("words"),), {"contents": [{"uri": uri, "text": "words"}]})

    async def subscribe_resource(self, server_name: str, uri: str, *, wanted: bool = True) -> None:
        self._ask(server_name)
        self.subscriptions.append((uri, wanted))

    async def complete(self, server_name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        self._ask(server_name)
        return {"values": ["red", "green"], "hasMore": False}

    def _ask(self, server_name: str) -> None:
        self.asked.append(server_name)
        if server_name in self.away:
            raise MCPConnectionError(f"server {server_name!r} is away", server=server_name)


class World:
    """A door, and all that stands behind it."""

    def __init__(
        self,
        tools: Sequence[FakeTool],
        *,
        mapper: MCPToolMapper | None = None,
        read_only: Sequence[str] = (),
        secrets: Sequence[str] = (),
        away: Sequence[str] = (),
        limiter: FakeLimiter | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.log = FakeAuditLog()
        self.grants = FakeGrants(self.log)
        self.limiter = limiter or FakeLimiter()
        self.source = FakeSource([*dict.fromkeys(tool.definition.server for tool in tools), *away], set(away))
        registry = InMemoryToolRegistry()
        for server in self.source.servers:
            registry.replace(server, [tool for tool in tools if tool.definition.server == server])
        self.seen: list[ToolExecution] = []
        self.door = AgentMCPService(
            Parts(
                source=self.source,
                registry=registry,
                permissions=Permissions(mapper or MCPToolMapper(), self.grants, clock=self.clock),
                schemas=FakeSchemas(),
                limiter=self.limiter,
                recorder=Recorder(self.log, clock=self.clock, redactor=Redactor(secrets), observers=[self]),
                grants=self.grants,
                read_only=lambda tool: tool.tool in read_only,
            )
        )

    def observe(self, record: ToolExecution) -> None:
        self.seen.append(record)
