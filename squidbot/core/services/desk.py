"""The desk: everything that people and programs may look at or change on a running gateway, whichever way they come.

Every method is given who asks, and asks for their right first (`Principal.require`): an auditor may look, an admin may
change. A role's token reaches its own tools only: `tools_for` and `call_tool`.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from anyio.streams.memory import MemoryObjectReceiveStream

from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.audit import GrantChange, RecordFilter, ToolExecution, Usage, Verification
from squidbot.core.domain.callers import Caller, Origin
from squidbot.core.domain.errors import InvalidArguments, NotFound, Problem, SquidbotError, UnknownTool
from squidbot.core.domain.happenings import Happening, Topic
from squidbot.core.domain.members import NewToken, Principal, TokenRecord
from squidbot.core.domain.naming import bare_name
from squidbot.core.domain.roles import Decision, MCPToolMapper
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.tools import ToolDefinition, ToolId, with_fixed
from squidbot.core.domain.views import (
    Called,
    Granted,
    Grid,
    Overview,
    RecordPage,
    RoleView,
    Series,
    ServerView,
    SettingsReport,
    ToolView,
    read_cursor,
    written_cursor,
)
from squidbot.core.domain.who_may import grid_of, known_role, role_view, tool_view
from squidbot.core.ports import Clock, OnProgress, Trail
from squidbot.core.services.admission import Admission
from squidbot.core.services.door import AgentMCPService
from squidbot.core.services.hub import Hub

MOST_RECORDS = 500
"""On one page."""
MOST_BUCKETS = 500
_EVERYTHING = RecordFilter()
_USABLE = frozenset({"ready", "idle", "disabled"})


def _nothing(_server: str) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class DeskParts:
    """What the desk is made of. `restart` and what follows is done by whoever has the servers."""

    door: AgentMCPService
    trail: Trail
    admission: Admission
    hub: Hub
    clock: Clock
    version: str
    read_only: Callable[[ToolId], bool]
    restart: Callable[[str], Awaitable[None]]
    statuses: Callable[[], Sequence[ServerStatus]]
    """Of every server of the settings, also of those that are switched off."""
    stderr: Callable[[str], Sequence[str]] = _nothing
    """A server's last lines, without secrets."""
    settings: Callable[[], SettingsReport] = SettingsReport


class Desk:
    """Looks things up and changes them, for whoever has the right to. Nothing is read or opened when it is built."""

    def __init__(self, parts: DeskParts) -> None:
        self._parts = parts
        self._door = parts.door
        self._started = parts.clock.time()

    @property
    def version(self) -> str:
        """Of squidbot itself."""
        return self._parts.version

    def now(self) -> float:
        """Seconds since 1970."""
        return self._parts.clock.time()

    def is_ready(self) -> bool:
        """Whether at least one server can be used, or there are none to wait for. Everybody may know."""
        states = [status.state for status in self._parts.statuses()]
        return not states or any(state in _USABLE for state in states)

    def clean(self, text: str) -> str:
        """Foreign words without secrets."""
        return self._door.recorder.redactor.text(text)

    def _clean(self, status: ServerStatus) -> ServerStatus:
        error, hint, instructions = (
            None if text is None else self.clean(text) for text in (status.error, status.hint, status.instructions)
        )
        info = self._door.recorder.redactor.tree(status.info)
        return replace(status, error=error, hint=hint, instructions=instructions, info=info)

    # Looking

    async def overview(self, who: Principal) -> Overview:
        """The gateway at a glance. Raises NotAllowed, NotRecorded."""
        mapper = await self._looking(who)
        states: Counter[str] = Counter(status.state for status in self._parts.statuses())
        return Overview(
            version=self._parts.version,
            started=self._started,
            ready=self.is_ready(),
            servers=dict(states),
            tools=len(self._door.all_tools()),
            roles=len(mapper.roles),
            revision=mapper.revision,
            under_way=await self._parts.trail.open_intents(),
            listeners=self._parts.hub.listeners,
        )

    def servers(self, who: Principal) -> tuple[ServerView, ...]:
        """Every server of the settings. Raises NotAllowed."""
        who.require("look")
        return tuple(
            ServerView(self._clean(status), tuple(self.clean(line) for line in self._parts.stderr(status.name)))
            for status in self._parts.statuses()
        )

    def server(self, who: Principal, name: str) -> ServerView:
        """One server. Raises NotAllowed, NotFound."""
        servers = self.servers(who)
        found = next((server for server in servers if server.status.name == name), None)
        if found is None:
            raise NotFound("server", name, known=[server.status.name for server in servers])
        return found

    async def tools(self, who: Principal, *, server: str | None = None) -> tuple[ToolView, ...]:
        """Every tool, with who may use it. Raises NotAllowed, NotRecorded."""
        mapper = await self._looking(who)
        read_only = self._parts.read_only
        tools = [tool for tool in self._door.all_tools() if server in (None, tool.server)]
        return tuple(tool_view(mapper, tool, read_only=read_only(tool.id)) for tool in tools)

    async def tool(self, who: Principal, name: str) -> ToolView:
        """The tool that agents know by `name`. Raises NotAllowed, NotFound, NotRecorded."""
        mapper = await self._looking(who)
        found = self._named(name)
        if found is None:
            raise NotFound("tool", name)
        return tool_view(mapper, found, read_only=self._parts.read_only(found.id))

    async def tools_for(self, who: Principal, *, server: str | None = None) -> list[ToolDefinition]:
        """What somebody sees of the tools: those of their role, or all for who may look. Raises NotAllowed, NotRecorded."""
        if who.role is None:
            who.require("look")
            return [tool for tool in self._door.all_tools() if server in (None, tool.server)]
        caller = who.caller("api")
        await self._door.permissions.refresh(caller)
        return self._door.tools(caller, server)

    async def roles(self, who: Principal) -> tuple[RoleView, ...]:
        """Every role. Raises NotAllowed, NotRecorded."""
        mapper = await self._looking(who)
        tools = self._door.all_tools()
        return tuple(role_view(mapper, name, tools) for name in mapper.roles)

    async def role(self, who: Principal, name: str) -> RoleView:
        """One role. Raises NotAllowed, NotFound, NotRecorded."""
        mapper = await self._looking(who)
        return role_view(mapper, known_role(mapper, name), self._door.all_tools())

    async def mapper(self, who: Principal) -> MCPToolMapper:
        """All roles and grants as they are now. Raises NotAllowed, NotRecorded."""
        return await self._looking(who)

    async def grid(self, who: Principal) -> Grid:
        """Roles against tools. Raises NotAllowed, NotRecorded."""
        mapper = await self._looking(who)
        return grid_of(mapper, self._door.all_tools())

    async def explain(
        self, who: Principal, role: str, server: str, tool: str, arguments: Mapping[str, Any] | None = None
    ) -> Decision:
        """Whether a role may, by which rule, and why; without arguments, whether with any at all.

        Raises NotAllowed, NotFound for an unknown role, NotRecorded.
        """
        mapper = await self._looking(who)
        known_role(mapper, role)
        known = next((item for item in self._door.all_tools() if item.id == (server, tool)), None)
        fixed = known.fixed if known is not None else {}
        final = None if arguments is None else with_fixed(arguments, fixed)
        return mapper.decide(role, server, tool, final, fixed=fixed or None)

    async def grants(self, who: Principal) -> tuple[GrantChange, ...]:
        """What the database grants and revokes, above the settings. Raises NotAllowed, NotRecorded."""
        return (await self._looking(who)).changes

    async def calls(
        self, who: Principal, wanted: RecordFilter = _EVERYTHING, *, limit: int = 50, cursor: str | None = None
    ) -> RecordPage:
        """A page of records, newest first. Raises NotAllowed, InvalidArguments, NotRecorded."""
        who.require("look")
        _check("limit", limit, MOST_RECORDS)
        before = None if cursor is None else read_cursor(cursor)
        found, after = await self._parts.trail.page(wanted, newest=limit, before=before)
        return RecordPage(tuple(found), None if after is None else written_cursor(after))

    async def call(self, who: Principal, record: str) -> ToolExecution:
        """One record. Raises NotAllowed, NotFound, NotRecorded."""
        who.require("look")
        found = await self._parts.trail.get(record)
        if found is None:
            raise NotFound("record", record)
        return found

    async def usage(self, who: Principal, wanted: RecordFilter = _EVERYTHING) -> list[Usage]:
        """What each role made of each tool. Raises NotAllowed, NotRecorded."""
        who.require("look")
        return await self._parts.trail.usage(wanted)

    async def series(
        self, who: Principal, wanted: RecordFilter = _EVERYTHING, *, seconds: int = 60, count: int = 60
    ) -> Series:
        """Calls, errors and times in spans of so many seconds up to now. Raises NotAllowed, InvalidArguments, NotRecorded."""
        who.require("look")
        _check("seconds", seconds, 31 * 86_400)
        _check("count", count, MOST_BUCKETS)
        # The last span is the one that is under way.
        begin = (int(self._parts.clock.time()) // seconds - count + 1) * seconds
        return await self._parts.trail.series(wanted, begin=begin, seconds=seconds, count=count)

    async def verify(self, who: Principal) -> Verification:
        """Whether the record is whole. Raises NotAllowed, NotRecorded."""
        who.require("look")
        return await self._parts.trail.verify()

    async def alerts(self, who: Principal, *, newest: int = 100) -> list[Alert]:
        """The newest alerts, newest first. Raises NotAllowed, NotRecorded."""
        who.require("look")
        return [*reversed(await self._parts.trail.alerts(newest=newest))]

    async def tokens(self, who: Principal) -> list[TokenRecord]:
        """All tokens, the newest last. Raises NotAllowed, NotRecorded."""
        who.require("look")
        return await self._parts.admission.list()

    def settings(self, who: Principal) -> SettingsReport:
        """Which settings are in force. Raises NotAllowed."""
        who.require("look")
        return self._parts.settings()

    def listen(
        self, who: Principal, topics: Collection[Topic] | None = None
    ) -> AbstractContextManager[MemoryObjectReceiveStream[Happening]]:
        """A stream of what happens from now on. Raises NotAllowed."""
        who.require("look")
        return self._parts.hub.listen(topics)

    # Changing

    async def change_grant(
        self, who: Principal, *, role: str, server: str, tool: str, enabled: bool, origin: Origin = "api"
    ) -> Granted:
        """Grant or revoke, above the settings; recorded with who did. Raises NotAllowed, NotFound, NotRecorded."""
        who.require("change")
        await self._door.permissions.refresh(now=True)
        known_role(self._door.permissions.mapper, role)
        known = [status.name for status in self._parts.statuses()]
        if server not in known:
            raise NotFound("server", server, known=known)
        record = await self._door.change_grant(_by(who, origin), role=role, server=server, tool=tool, enabled=enabled)
        return Granted(role, server, tool, enabled, self._door.permissions.revision, record)

    async def create_token(
        self, who: Principal, wanted: str, *, name: str, expires: float | None = None, origin: Origin = "api"
    ) -> NewToken:
        """Make a token for a role or a right. Raises NotAllowed, NotFound, InvalidArguments, NotRecorded."""
        who.require("change")
        return await self._parts.admission.create(_by(who, origin), wanted, name=name, expires=expires)

    async def revoke_token(self, who: Principal, token: str, *, origin: Origin = "api") -> TokenRecord:
        """Take a token back. Raises NotAllowed, NotFound, NotRecorded."""
        who.require("change")
        return await self._parts.admission.revoke(_by(who, origin), token)

    async def restart(self, who: Principal, server: str, *, origin: Origin = "api") -> ServerView:
        """End a server and start it anew; recorded with who did. Raises NotAllowed, NotFound, NotRecorded."""
        who.require("change")
        self.server(who, server)
        recorder = self._door.recorder
        attempt = recorder.attempt(_by(who, origin), ToolId(server, "restart"), {}, revision="", kind="settings")
        await recorder.intend(attempt, changes=True)
        try:
            await self._parts.restart(server)
        except SquidbotError as error:
            await recorder.failed(attempt, str(error), outcome="server_error")
            raise
        except KeyError:  # removed from the settings a moment ago
            await recorder.failed(attempt, "the settings no longer have it", outcome="server_error")
            raise NotFound("server", server) from None
        await recorder.done(attempt, None)
        return self.server(who, server)

    async def call_tool(
        self,
        who: Principal,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        role: str | None = None,
        origin: Origin = "api",
        on_progress: OnProgress | None = None,
    ) -> Called:
        """Call a tool by the name that agents see: in one's own role, or as an admin in any `role`, recorded with both.

        Raises NotAllowed, NotFound for an unknown role, and whatever the guarded door raises.
        """
        caller = await self._acting(who, role, origin)
        tool = self._named(name) or self._absent(name)
        if tool is None:
            error = UnknownTool(f"Unknown tool: {name}")
            await self._door.refuse_unknown(caller, name, arguments or {}, error)
            raise error
        began = time.perf_counter()
        result = await self._door.execute_tool(caller, tool.server, tool.tool, arguments, on_progress=on_progress)
        return Called(tool, result, (time.perf_counter() - began) * 1000)

    # Inside

    async def _looking(self, who: Principal) -> MCPToolMapper:
        who.require("look")
        await self._door.permissions.refresh()
        return self._door.permissions.mapper

    async def _acting(self, who: Principal, role: str | None, origin: Origin) -> Caller:
        """In whose role a tool is called: a role's token has one, and no other; an admin has to name one."""
        if who.role is not None:
            if role not in (None, who.role):
                who.require("change")
            return who.caller(origin)
        who.require("change")
        await self._door.permissions.refresh()
        if role is None:
            raise InvalidArguments("a right has no tools:", [Problem("role", "must name the role to try the tool in")])
        return Caller(known_role(self._door.permissions.mapper, role), member=who.member, origin=origin)

    def _named(self, name: str) -> ToolDefinition | None:
        return next((tool for tool in self._door.all_tools() if tool.name == name), None)

    def _absent(self, name: str) -> ToolDefinition | None:
        """A tool of a server that never came up: which those are is not known, but which server is meant is."""
        for status in self._parts.statuses():
            begin = bare_name(ToolId(status.name, ""))
            if status.state in ("failed", "connecting") and not status.tools and name.startswith(begin):
                return ToolDefinition(status.name, name[len(begin) :], name)
        return None


def _by(who: Principal, origin: Origin) -> Caller:
    """Who changes something, for the record: the right in the place of the role, and the member."""
    return Caller(who.standing, member=who.member, origin=origin)


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidArguments("this cannot be answered:", [Problem(name, f"must be between 1 and {most}")])
