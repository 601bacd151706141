"""All servers of one configuration: connected side by side, their tools in one registry, each called by name."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio

from squidbot.adapters.mcp.callbacks import Answer, Callbacks, OnEvent, OnLog, OnUnclaimed
from squidbot.adapters.mcp.calling import unavailable
from squidbot.adapters.mcp.connection import MCPConnection
from squidbot.adapters.mcp.opening import Surroundings
from squidbot.adapters.mcp.reconfiguring import changes_of, named
from squidbot.adapters.mcp.remembered import Memory
from squidbot.adapters.mcp.server_log import log_entry
from squidbot.adapters.mcp.tool import MCPToolAdapter
from squidbot.adapters.mcp.transport import SignIn, Transport
from squidbot.adapters.mcp.transports.table import TRANSPORTS
from squidbot.adapters.registry.memory import InMemoryToolRegistry
from squidbot.adapters.schemas.checker import JSONSchemaCheck
from squidbot.config.schema import MCPConfig, MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError
from squidbot.core.domain.naming import agent_names, nearest
from squidbot.core.domain.prompts import PromptDefinition, RenderedPrompt, ResourceContents, ResourceDefinition
from squidbot.core.domain.servers import EventKind, ServerChanges, ServerEvent, ServerStatus
from squidbot.core.domain.tools import ToolDefinition, ToolId, ToolResult
from squidbot.core.ports import Counterpart, OnProgress, Question, SchemaCheck, ToolRegistry

_LOOK = 0.25
"""Seconds between two looks whether anybody still waits for a server."""
_QUIET = 4
"""Looks in a row at which nobody did: a call that was let in may still be on its way to it."""
_OFFERS: tuple[EventKind, ...] = ("tools_changed", "prompts_changed", "resources_changed")


class MCPClient:
    """Every server that the settings name. Leaving the context disconnects all of them, and closes the schema check."""

    def __init__(
        self,
        config: MCPConfig,
        *,
        on_log: OnLog | None = None,
        on_event: OnEvent | None = None,
        sampling: Answer | None = None,
        elicitation: Answer | None = None,
        roots: Sequence[str | Path] | None = None,
        transports: Mapping[str, Transport] = TRANSPORTS,
        registry: ToolRegistry | None = None,
        schemas: SchemaCheck | None = None,
        state: Path | None = None,
        sign_in: SignIn | None = None,
        lazy: bool = False,
        converses: bool = False,
    ) -> None:
        self.on_unclaimed: OnUnclaimed | None = None
        """Hears of servers' questions that nobody was asked."""
        self.registry: ToolRegistry = registry if registry is not None else InMemoryToolRegistry()
        self._lazy = lazy
        self._schemas: SchemaCheck = schemas if schemas is not None else JSONSchemaCheck()
        self._around = Surroundings(
            transports=transports,
            memory=Memory(state),
            callbacks=Callbacks(
                on_log or log_entry,
                on_event,
                sampling,
                elicitation,
                roots,
                converses=converses,
                on_unclaimed=self._unclaimed,
            ),
            schemas=self._schemas,
            state=state,
            sign_in=sign_in,
        )
        self._connections: dict[str, MCPConnection] = {}
        for name, entry in config.servers.items():
            self._connections[name] = self._connection(name, entry)
        self._leaving = False
        self._listed: set[str] = set()
        self._published: dict[str, Mapping[str, ToolDefinition]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.disconnect_all()
            await self._schemas.aclose()

    # Connecting

    async def connect(self, server_name: str) -> bool:
        """Connect a server; False if the name is unknown or disabled, or the start failed (`status` says why).

        A server that failed is tried again in the background, until `disconnect`.
        """
        connection = self._connections.get(server_name)
        if connection is None or not connection.config.enabled or self._leaving:
            return False
        self._listed.add(server_name)
        ready = await connection.open()
        self._publish(server_name)
        return ready

    async def connect_all(self, names: Iterable[str] | None = None) -> dict[str, bool]:
        """Connect several servers, or all that are enabled, side by side."""
        return await self._side_by_side(self._enabled() if names is None else names, self.connect)

    async def start_all(self) -> None:
        """Start all servers that are enabled at once, and wait for none: their tools appear as they come up."""
        for name in self._enabled():
            await self._begin(name)

    async def restart(self, server_name: str) -> bool:
        """End a server and start it anew; whether it came up. Raises KeyError for a name that the settings do not have."""
        await self._connections[server_name].stop("it is being restarted")
        return await self.connect(server_name)

    async def reconfigure(self, config: MCPConfig) -> ServerChanges:
        """Take other servers: what is unchanged stays connected, the rest is ended or started, without waiting for it."""
        wanted = {name: named(name, entry) for name, entry in config.servers.items()}
        before = self._connections
        changes = changes_of(before, wanted)
        self._connections = {
            name: self._connection(name, entry) if name in (*changes.added, *changes.changed) else before[name]
            for name, entry in wanted.items()
        }
        for name in changes.adjusted:
            before[name].adopt(wanted[name])
        self._listed.difference_update(changes.removed, changes.changed)

        async def end(name: str) -> None:
            await before[name].stop(
                "its settings have changed" if name in wanted else "it was removed from the settings"
            )
            if name not in self._listed:
                self._forget(name)

        with anyio.CancelScope(shield=True):  # nobody else knows these any more
            await self._side_by_side((*changes.removed, *changes.changed), end)
        for name in (*changes.added, *changes.changed):
            await self._begin(name)
        recalled = [name for name in changes.added if self._published.get(name)]
        for name in (*changes.removed, *changes.changed, *changes.adjusted, *recalled):
            for kind in _OFFERS:
                self._around.callbacks.event(ServerEvent(name, kind))
        return changes

    async def prepare(self, names: Iterable[str] | None = None) -> dict[str, bool]:
        """Make tools known: of lazy servers from the last list if there is one, of all others by connecting."""
        return await self._side_by_side(self._enabled() if names is None else names, self._make_known)

    async def disconnect(self, server_name: str) -> None:
        """Disconnect a server and forget its tools; nothing happens for an unknown name."""
        connection = self._connections.get(server_name)
        if connection is not None:
            self._listed.discard(server_name)
            await connection.stop()
            self._forget(server_name)

    async def disconnect_all(self) -> None:
        """Disconnect every server, side by side."""
        await self._side_by_side(self._connections, self.disconnect)

    async def let_go(self) -> None:
        """Connect no server any more, and disconnect each once nobody waits for an answer of it; until all are disconnected.

        Their tools stay known: whoever comes late is told why they cannot be used.
        """
        self._leaving = True
        quiet: dict[str, int] = {}
        async with anyio.create_task_group() as tasks:
            while len(quiet) < len(self._connections) or min(quiet.values(), default=_QUIET) < _QUIET:
                for name, connection in self._connections.items():
                    before = quiet.get(name, 0)
                    quiet[name] = before if before >= _QUIET else 0 if connection.busy else before + 1
                    if before < _QUIET <= quiet[name]:
                        tasks.start_soon(connection.stop, "squidbot is ending")
                await anyio.sleep(_LOOK)

    def hurry(self) -> None:
        """Let no server have much time to end, now or when it is disconnected."""
        for connection in self._connections.values():
            connection.hurry()

    # Looking

    def recall(self) -> None:
        """Know from the last time what each enabled server offers, without connecting any."""
        for name in self._enabled():
            if self._connections[name].recall():
                self._listed.add(name)
                self._publish(name)

    def status(self, server_name: str) -> ServerStatus:
        """How a server is. Raises KeyError for a name that the settings do not have."""
        return self._connections[server_name].status

    def server_names(self) -> list[str]:
        """Every server that is enabled, in the order of the settings."""
        return self._enabled()

    def connection(self, server_name: str) -> MCPConnection:
        """One server. Raises KeyError for a name that the settings do not have."""
        return self._connections[server_name]

    def unavailable(self, server_name: str) -> str | None:
        """Why a server cannot be used now, in short; None if it can."""
        connection = self._connections[server_name]
        return None if connection.state in ("ready", "idle") else connection.reason

    def statuses(self) -> list[ServerStatus]:
        """How all servers are, in the order of the settings."""
        return [connection.status for connection in self._connections.values()]

    def get_available_tools(self, server_name: str | None = None) -> list[ToolDefinition]:
        """The tools of all servers, or of one, under the names that agents see."""
        return [tool.definition for tool in self.registry.tools(server_name)]

    def get_prompts(self, server_name: str | None = None) -> list[PromptDefinition]:
        """The prompts of all servers, or of one, under the names that agents see."""
        found = [prompt for name in sorted(self._listed) for prompt in self._connections[name].catalogue.prompts]
        names = agent_names(ToolId(prompt.server, prompt.prompt) for prompt in found)
        return [
            replace(prompt, name=names[ToolId(prompt.server, prompt.prompt)])
            for prompt in found
            if server_name in (None, prompt.server) and ToolId(prompt.server, prompt.prompt) in names
        ]

    def get_resources(self, server_name: str | None = None) -> list[ResourceDefinition]:
        """The resources and resource templates of all servers, or of one."""
        return [
            resource
            for name in sorted(self._listed)
            if server_name in (None, name)
            for resource in self._connections[name].catalogue.resources
        ]

    # Using

    async def call_tool(
        self,
        server_name: str,
        tool_name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        counterpart: Counterpart | None = None,
    ) -> ToolResult:
        """Call a tool by its own name. Raises nothing but cancellation."""
        connection = self._connections.get(server_name)
        if connection is None:
            return ToolResult.failed(
                f"there is no server {server_name!r}{_meant(server_name, self._connections)}", "unavailable"
            )
        began = asyncio.get_running_loop().time()
        if connection.idle:
            woken = False
            with anyio.move_on_after(connection.config.request_timeout if timeout is None else timeout):
                woken = await self._wake(connection)
            if not woken:
                return ToolResult.failed(unavailable(connection.config.name, connection.reason), "unavailable")
        if tool_name not in connection.catalogue.tools:
            if connection.state != "ready":
                return ToolResult.failed(unavailable(connection.config.name, connection.reason), "unavailable")
            near = _meant(tool_name, connection.catalogue.tools)
            return ToolResult.failed(f"server {server_name!r} has no tool {tool_name!r}{near}", "unknown_tool")
        return await connection.call_tool(
            tool_name, arguments, timeout=timeout, began=began, on_progress=on_progress, counterpart=counterpart
        )

    async def render_prompt(
        self,
        server_name: str,
        prompt_name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        counterpart: Counterpart | None = None,
    ) -> RenderedPrompt:
        """Fill a prompt. Raises MCPConnectionError, MCPRequestRefused or MCPProtocolError."""
        return await (await self._awake(server_name)).render_prompt(prompt_name, arguments, counterpart=counterpart)

    async def read_resource(
        self, server_name: str, uri: str, *, counterpart: Counterpart | None = None
    ) -> ResourceContents:
        """Read a resource. Raises MCPConnectionError, MCPRequestRefused or MCPProtocolError."""
        return await (await self._awake(server_name)).read_resource(uri, counterpart=counterpart)

    async def subscribe_resource(self, server_name: str, uri: str, *, wanted: bool = True) -> None:
        """Hear of updates of a resource as `resource_updated` events, or with `wanted` false no longer."""
        await (await self._awake(server_name)).subscribe(uri, wanted=wanted)

    async def complete(self, server_name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Completions of a prompt's or a template's argument; params and result as on the wire."""
        return await (await self._awake(server_name)).complete(params)

    # Inside

    async def _unclaimed(self, question: Question, server: str, params: Mapping[str, Any], reason: str) -> None:
        if self.on_unclaimed is not None:
            await self.on_unclaimed(question, server, params, reason)

    def _connection(self, name: str, entry: MCPServerConfig) -> MCPConnection:
        def changed() -> None:
            if self._connections.get(name) is connection:  # and not one that was ended for other settings
                self._publish(name)

        connection = MCPConnection(named(name, entry), self._around, on_change=changed)
        return connection

    async def _begin(self, server_name: str) -> None:
        """Start a server without waiting for it; a lazy one only if it was never listed."""
        connection = self._connections[server_name]
        if not connection.config.enabled or self._leaving:
            return
        self._listed.add(server_name)
        if (self._lazy or connection.config.lazy) and connection.idle and connection.recall():
            self._publish(server_name)
        else:
            await connection.begin()

    def _forget(self, server_name: str) -> None:
        self._published.pop(server_name, None)
        self.registry.replace(server_name, ())

    def _enabled(self) -> list[str]:
        return [name for name, connection in self._connections.items() if connection.config.enabled]

    async def _make_known(self, server_name: str) -> bool:
        connection = self._connections.get(server_name)
        if connection is None or not connection.config.enabled:
            return False
        self._listed.add(server_name)
        if (self._lazy or connection.config.lazy) and connection.idle and connection.recall():
            self._publish(server_name)
            return True
        return await self.connect(server_name)

    async def _awake(self, server_name: str) -> MCPConnection:
        connection = self._connections.get(server_name)
        if connection is None:
            raise MCPConnectionError(f"there is no server {server_name!r}{_meant(server_name, self._connections)}")
        if connection.idle and not await self._wake(connection):
            raise MCPConnectionError(unavailable(connection.config.name, connection.reason), server=server_name)
        return connection

    async def _wake(self, connection: MCPConnection) -> bool:
        """Connect a lazy server at its first use."""
        lazy = (self._lazy or connection.config.lazy) and connection.config.name in self._listed
        return lazy and await self.connect(connection.config.name)

    def _publish(self, server_name: str) -> None:
        """Put what a server offers now into the registry, all at once, if it is not there yet."""
        tools = self._connections[server_name].catalogue.tools
        if server_name in self._listed and self._published.get(server_name) is not tools:
            self._published[server_name] = tools
            self.registry.replace(server_name, [MCPToolAdapter(self, tool) for tool in tools.values()])

    async def _side_by_side(self, names: Iterable[str], act: Any) -> dict[str, Any]:
        wanted = list(names)
        done: dict[str, Any] = dict.fromkeys(wanted)

        async def one(name: str) -> None:
            done[name] = await act(name)

        async with anyio.create_task_group() as tasks:
            for name in wanted:
                tasks.start_soon(one, name)
        return done


def _meant(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known, cutoff=0.5)
    return f"; did you mean {' or '.join(repr(found) for found in near)}?" if near else ""
