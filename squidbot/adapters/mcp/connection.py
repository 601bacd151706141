"""One live server: kept up by its supervisor, asked through its session."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from squidbot.adapters.mcp.attribution import UnderWay
from squidbot.adapters.mcp.breaker import Breaker
from squidbot.adapters.mcp.calling import checked, failed_call, http_failure, request_error
from squidbot.adapters.mcp.catalogue import Catalogue
from squidbot.adapters.mcp.content import rendered_prompt, resource_contents, tool_result
from squidbot.adapters.mcp.opening import Surroundings
from squidbot.adapters.mcp.protocol import MCPError
from squidbot.adapters.mcp.supervisor import NotReady, Supervisor
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError, MCPProtocolError
from squidbot.core.domain.prompts import RenderedPrompt, ResourceContents
from squidbot.core.domain.servers import ServerState, ServerStatus
from squidbot.core.domain.text import visible
from squidbot.core.domain.tools import Failure, ToolDefinition, ToolResult
from squidbot.core.ports import Counterpart, OnProgress

_INSTRUCTIONS = 16_384
"""Characters of a server's instructions that are passed on."""


class MCPConnection:
    """One server. `start` raises MCPConnectionError; from then on it is kept up until `stop`."""

    def __init__(
        self,
        config: MCPServerConfig,
        around: Surroundings | None = None,
        *,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.config = config
        self._around = replace(around or Surroundings(), under_way=UnderWay())
        self._supervisor = Supervisor(config, self._around, on_change=on_change)
        self._timeout = config.timeout or 30.0
        self._breaker = Breaker()
        self._calls = self._failed = 0
        self._losses = -1

    # Life

    async def start(self) -> None:
        """Connect, and stay connected. Raises MCPConnectionError if it does not come up; then nothing is left."""
        if not await self.open():
            name = self.config.name
            error = self._supervisor.error or MCPConnectionError(f"server {name!r} was stopped", server=name)
            await self.stop()
            raise error

    async def open(self) -> bool:
        """Connect if need be and wait for the outcome; a server that failed is tried again in the background."""
        return await self._supervisor.open()

    async def begin(self) -> None:
        """Connect if need be, without waiting for the outcome."""
        await self._supervisor.begin()

    async def stop(self, why: str | None = None) -> None:
        """Disconnect; afterwards nothing of the server is left. Calls that are under way are told `why`."""
        await self._supervisor.stop(why)
        self._breaker = Breaker()

    def hurry(self) -> None:
        """Let a process have little time to end, now or when it is stopped."""
        self._supervisor.hurry()

    def adopt(self, config: MCPServerConfig) -> None:
        """Take other settings for the server as it runs (`MCPServerConfig.runs_as`)."""
        self.config, self._timeout = config, config.timeout or 30.0
        self._supervisor.adopt(config)

    def recall(self) -> bool:
        """Know the server's lists from the last time, without connecting; False if there was none."""
        return self._supervisor.recall()

    @property
    def idle(self) -> bool:
        """Whether nobody keeps it up: it was never started, or was stopped."""
        return self._supervisor.idle

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer of it."""
        return bool(self._around.under_way.calls)

    @property
    def state(self) -> ServerState:
        """The state alone, which is quicker to tell than all of `status`."""
        return self._supervisor.state if self.config.enabled else "disabled"

    @property
    def reason(self) -> str:
        """Why it cannot be used, in short, for a model."""
        return self._supervisor.reason

    @property
    def catalogue(self) -> Catalogue:
        """What the server offers, as far as is known."""
        return self._supervisor.catalogue

    @property
    def status(self) -> ServerStatus:
        """How the server is; one that is there and has its calls refused is degraded, too."""
        life, breaker = self._supervisor, self._breaker
        session, known, error = life.session, life.known, life.error
        refused = self.state == "ready" and breaker.is_open(life=life.restarts)
        return ServerStatus(
            name=self.config.name,
            transport=self.config.transport,
            state="degraded" if refused else self.state,
            tools=len(life.catalogue.tools) if known is not None else None,
            protocol=session.protocol if session else None,
            error=breaker.reason if refused else str(error) if error else None,
            hint=error.hint if error else None,
            since=breaker.since if refused else life.since,
            instructions=visible(known.instructions[:_INSTRUCTIONS]) if known and known.instructions else None,
            info=known.info if known else {},
            counters={
                **(session.wire.counters if session else {}),
                "restarts": life.restarts,
                "calls": self._calls,
                "failed": self._failed,
                "declined": self._around.under_way.declined,
            },
            stderr=life.stderr,
        )

    # Use

    async def list_tools(self) -> list[ToolDefinition]:
        """The server's tools, asked for anew. Raises MCPConnectionError."""
        try:
            await self._supervisor.refresh({"tools"}, await self._supervisor.ready_session(self._timeout))
        except MCPError as error:
            raise request_error(error, "tools/list", self.config) from None
        return list(self.catalogue.tools.values())

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        began: float | None = None,
        on_progress: OnProgress | None = None,
        counterpart: Counterpart | None = None,
    ) -> ToolResult:
        """Call a tool. Raises nothing but cancellation: every failure is a result with `is_error`.

        `began` is when the caller began to wait, on the loop's clock, if the server had to be started first.
        """
        limit = self.config.request_timeout if timeout is None else timeout
        now = asyncio.get_running_loop().time
        left = limit if began is None else limit - (now() - began)
        if (wait := self._breaker.wait(now(), life=self._supervisor.restarts)) > 0:
            return ToolResult.failed(
                f"server {self.config.name!r} is not available: {self._breaker.reason}. It is tried again in {wait:.0f} s",
                "unavailable",
                retry_after=wait,
            )
        self._calls += 1
        tool = self.catalogue.tools.get(name)
        given = {**(arguments or {}), **tool.fixed} if tool is not None else dict(arguments or {})
        params = {"name": (tool.upstream if tool is not None else None) or name, "arguments": given}
        try:
            raw = await self._ask(
                "tools/call",
                params,
                timeout=left,
                counterpart=counterpart,
                on_progress=on_progress,
                headers=self.catalogue.headers.get(name),
            )
        except MCPError as error:
            failed = failed_call(error, name, config=self.config, timeout=limit)
            if failed.failure and failed.failure.kind == "timeout" and self._supervisor.attendant is not None:
                self._supervisor.attendant.suspect()
            self._failed += 1
            if self._is_servers_fault(error, failed):
                self._breaker.failed(failed.text, now(), life=self._supervisor.restarts)
            return failed
        self._breaker.succeeded()
        self._supervisor.proved()
        source = f"server {self.config.name!r}, tool {name!r}"
        result = tool_result(raw, blocks=self.config.bounds.blocks, source=source)
        return result if tool is None else await checked(result, tool, self._around.schemas)

    async def render_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, counterpart: Counterpart | None = None
    ) -> RenderedPrompt:
        """Fill a prompt. Raises MCPConnectionError, MCPRequestRefused or MCPProtocolError."""
        params = {"name": name, "arguments": dict(arguments or {})}
        raw = await self._ask_or_raise("prompts/get", params, f"prompt {name!r}", counterpart)
        self._hold(raw.get("messages"), f"prompt {name!r}")
        return rendered_prompt(raw)

    async def read_resource(self, uri: str, *, counterpart: Counterpart | None = None) -> ResourceContents:
        """Read a resource. Raises MCPConnectionError, MCPRequestRefused or MCPProtocolError."""
        raw = await self._ask_or_raise("resources/read", {"uri": uri}, f"resource {uri!r}", counterpart)
        self._hold(raw.get("contents"), f"resource {uri!r}")
        return ResourceContents(resource_contents(raw), raw)

    async def complete(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask for completions of an argument; params and result as on the wire."""
        raw = await self._ask_or_raise("completion/complete", params, "completion")
        completion = raw.get("completion")
        return completion if isinstance(completion, Mapping) else {}

    async def subscribe(self, uri: str, *, wanted: bool = True) -> None:
        """Hear of updates of a resource (`resource_updated` events), or with `wanted` false no longer."""
        try:
            session = await self._supervisor.ready_session(self._timeout)
        except MCPError as error:
            raise request_error(error, f"resource {uri!r}", self.config) from None
        if session.era == "modern" and self._supervisor.attendant is not None:
            (self._supervisor.attendant.subscribe if wanted else self._supervisor.attendant.unsubscribe)(uri)
        else:
            method = "resources/subscribe" if wanted else "resources/unsubscribe"
            await self._ask_or_raise(method, {"uri": uri}, f"resource {uri!r}")
            (self._supervisor.subscriptions.add if wanted else self._supervisor.subscriptions.discard)(uri)

    def _hold(self, parts: Any, what: str) -> None:
        """Hold an answer to as many parts as a tool's may have. Raises MCPProtocolError."""
        most = self.config.bounds.blocks
        if isinstance(parts, list) and len(parts) > most:
            raise MCPProtocolError(
                f"server {self.config.name!r}, {what}: the answer has {len(parts)} blocks, too many (limit {most})"
            )

    async def _ask_or_raise(
        self, method: str, params: Mapping[str, Any], what: str, counterpart: Counterpart | None = None
    ) -> dict[str, Any]:
        try:
            return await self._ask(method, params, timeout=self.config.request_timeout, counterpart=counterpart)
        except MCPError as error:
            raise request_error(error, what, self.config) from None

    async def _ask(
        self, method: str, params: Mapping[str, Any], *, timeout: float, counterpart: Counterpart | None, **how: Any
    ) -> dict[str, Any]:
        async with self._around.under_way.call(counterpart) as call:
            return await self._ask_once(method, params, timeout=timeout, call=call, **how)

    async def _ask_once(self, method: str, params: Mapping[str, Any], *, timeout: float, **how: Any) -> dict[str, Any]:
        """One request on the session there is; sent again only if the server said that it has lost our session."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        session = await self._supervisor.ready_session(timeout)
        try:
            return await session.interactive(method, params, timeout=deadline - loop.time(), **how)
        except MCPError as error:
            http = http_failure(error)
            if http is None:
                raise
            if not http.session_lost:
                if http.unreachable:
                    self._supervisor.doubt(session, error.error.message)
                raise
        self._supervisor.retire(session)
        session = await self._supervisor.ready_session(deadline - loop.time())
        return await session.interactive(method, params, timeout=deadline - loop.time(), **how)

    def _is_servers_fault(self, error: MCPError, failed: ToolResult) -> bool:
        """Whether a failure says something of the server's health; all calls that one loss took with it count once."""
        match failed.failure:
            case Failure(kind="timeout" | "protocol"):
                return True
            case Failure(kind="unavailable") if not isinstance(error, NotReady):
                first, self._losses = self._losses != self._supervisor.restarts, self._supervisor.restarts
                return first
            case Failure(status=int(status)):
                return status >= 500
            case _:
                return False
