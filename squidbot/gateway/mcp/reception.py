"""What each request of a client comes to at the door, as params and results on the wire."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, TypeAlias

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, SubscriptionFilter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from squidbot.core.domain.audit import RecordKind
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import InvalidArguments, NotRecorded, SquidbotError, ToolNotPermitted, UnknownTool
from squidbot.core.domain.servers import LogLevel
from squidbot.core.domain.tools import ToolId, ToolResult
from squidbot.core.ports import OnProgress
from squidbot.core.services.door import AgentMCPService
from squidbot.gateway.mcp.lists import Kind, Lists
from squidbot.gateway.mcp.parked import Parked
from squidbot.gateway.mcp.refusals import refused
from squidbot.gateway.mcp.results import call_result, prompt_result, read_result
from squidbot.gateway.mcp.rounds import PARKED, Rounds
from squidbot.gateway.mcp.sessions import Sessions
from squidbot.gateway.mcp.streams import Stream, Streams
from squidbot.gateway.mcp.visit import Correspondent, Line, Visit

_GIVING_BACK = 5.0
_KINDS: Mapping[str, RecordKind] = {"tools/call": "call", "prompts/get": "prompt", "resources/read": "resource"}
URIs: TypeAlias = list[str]
"""The class has a method named `list`."""


class Reception:
    """Between the protocol and the door."""

    def __init__(
        self,
        door: AgentMCPService,
        lists: Lists,
        *,
        streams: Streams,
        sessions: Sessions,
        rounds: Rounds,
        parked: Parked,
        page: int,
    ) -> None:
        self.lists = lists
        self._door = door
        self._streams = streams
        self._sessions = sessions
        self._rounds = rounds
        self._parked = parked
        self._page = page

    async def list(self, kind: Kind, key: str, visit: Visit, params: Mapping[str, Any]) -> dict[str, Any]:
        """One page of what the caller sees."""
        try:
            await self._door.permissions.refresh(visit.caller)
        except SquidbotError as error:
            return refused(error, "list", kind)
        listed = self.lists.of(visit.caller, visit.server, kind)
        cursor = params.get("cursor")
        if cursor is not None and not (isinstance(cursor, str) and cursor.isascii() and cursor.isdigit()):
            raise MCPError(INVALID_PARAMS, "Unknown cursor")
        start = int(cursor[:9]) if cursor else 0
        page = listed.page(key, start, self._page)
        return page.extended({"ttlMs": 0, "cacheScope": "private"}) if visit.is_modern else page

    async def call(self, visit: Visit, params: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool. Raises MCPError."""
        wrong = _wrong_with(params)
        if wrong is not None:
            return await self._misshapen(visit, params.get("name"), wrong)
        name, arguments, meta = params["name"], params.get("arguments") or {}, params.get("_meta") or {}
        try:
            which = await self._tool(visit, name, arguments)
            given = await self._given(visit, "tools/call", which, name, params)
            parked = given.pop(PARKED, None)

            async def execute(line: Line) -> ToolResult:
                correspondent = Correspondent(visit if line is visit.line else replace(visit, line=line), meta, given)
                return await self._door.execute_tool(
                    visit.caller,
                    which.server,
                    which.tool,
                    arguments,
                    on_progress=_progress(correspondent, meta),
                    counterpart=correspondent,
                )

            if parked is not None:
                result = await self._go_on(visit, which, parked, given)
            elif self._may_wait(visit, which.server):
                result = await self._parked.begin(visit.line, execute)
            else:
                result = await execute(visit.line)
        except SquidbotError as error:
            return refused(error, "tool", name)
        if result.failure is not None and result.failure.error is not None:
            said = result.failure.error
            raise MCPError(said["code"], said["message"], said.get("data"))
        return self._rounds.asked(visit, "tools/call", name, call_result(result, modern=visit.is_modern))

    async def refuse(self, visit: Visit, name: str, error: SquidbotError) -> None:
        """Put on record that a call was refused before anybody looked for its tool. Raises NotRecorded."""
        tool = self.lists.tool(visit.server, name)
        which = tool.id if tool is not None else ToolId(visit.server or "", name)
        await self._door.refuse(visit.caller, which, {}, error)

    async def _misshapen(self, visit: Visit, name: Any, wrong: str) -> dict[str, Any]:
        """Refuse a call that is none. Raises MCPError."""
        try:
            await self.refuse(visit, name if isinstance(name, str) else "", InvalidArguments(wrong))
        except NotRecorded as error:
            return refused(error, "tool", "")
        raise MCPError(INVALID_PARAMS, f"Invalid request parameters: {wrong}")

    async def prompt(self, visit: Visit, params: Mapping[str, Any]) -> dict[str, Any]:
        """Fill a prompt. Raises MCPError."""
        name, meta = params["name"], params.get("_meta") or {}
        try:
            await self._door.permissions.refresh(visit.caller)
            found = self.lists.prompt(visit.caller, visit.server, name)
            if found is None:
                raise UnknownTool(f"there is no prompt {name!r}")
            given = await self._given(visit, "prompts/get", ToolId(found.server, found.prompt), name, params)
            correspondent = Correspondent(visit, meta, given)
            rendered = await self._door.render_prompt(
                visit.caller, found.server, found.prompt, params.get("arguments") or {}, counterpart=correspondent
            )
        except SquidbotError as error:
            return refused(error, "prompt", name)
        wire = prompt_result(rendered, version=visit.version, modern=visit.is_modern)
        return self._rounds.asked(visit, "prompts/get", name, wire)

    async def read(self, visit: Visit, params: Mapping[str, Any]) -> dict[str, Any]:
        """Read a resource. Raises MCPError."""
        uri, meta = params["uri"], params.get("_meta") or {}
        try:
            given = await self._given(visit, "resources/read", ToolId(visit.server or "", uri), uri, params)
            correspondent = Correspondent(visit, meta, given)
            read = await self._door.read_resource(visit.caller, visit.server or "", uri, counterpart=correspondent)
        except SquidbotError as error:
            return refused(error, "resource", uri)
        wire = read_result(read, version=visit.version, modern=visit.is_modern)
        return self._rounds.asked(visit, "resources/read", uri, wire)

    async def complete(self, visit: Visit, params: Mapping[str, Any]) -> dict[str, Any]:
        """Complete an argument. Raises MCPError."""
        asked = {key: value for key, value in params.items() if key != "_meta"}
        server, reference = visit.server, params["ref"]
        if server is None:
            found = self.lists.prompt(visit.caller, None, str(reference.get("name")))
            if found is None:
                raise MCPError(INVALID_PARAMS, f"Unknown prompt: {reference.get('name')}")
            server, asked["ref"] = found.server, {**reference, "name": found.prompt}
        try:
            completion = await self._door.complete(visit.caller, server, asked)
        except SquidbotError as error:
            return refused(error, "completion", str(reference.get("name") or reference.get("uri")))
        return {"resultType": "complete", "completion": {"values": [], **completion}}

    def set_level(self, visit: Visit, level: LogLevel) -> None:
        """Which log messages the client wants."""
        self._sessions.set_level(visit.session, visit.state, level)

    async def subscribe(self, visit: Visit, uri: str, *, wanted: bool) -> None:
        """Hear of a resource, or no longer. Raises MCPError."""
        if (uri in visit.state.uris) == wanted:
            return
        server = visit.server or ""
        try:
            if wanted:
                await self._door.subscribe(visit.caller, server, uri, wanted=True)
                visit.state.held[uri] = (visit.caller, server)
        except SquidbotError as error:
            refused(error, "resource", uri)
        self._sessions.set_subscription(visit.session, visit.state, uri, wanted=wanted)

    async def give_back(self, uri: str, caller: Caller, server: str) -> None:
        """Unsubscribe from what nobody is there for any more. Raises nothing."""
        with anyio.move_on_after(_GIVING_BACK, shield=True):
            try:
                await self._door.subscribe(caller, server, uri, wanted=False)
            except SquidbotError:
                return  # a server that cannot be told will not tell us either

    async def listen(self, visit: Visit, wanted: SubscriptionFilter, meta: Mapping[str, Any]) -> None:
        """Serve a stream of the stateless era until it is ended. Raises MCPError."""
        if self._streams.is_full:
            raise MCPError(INTERNAL_ERROR, "Too many streams are open")
        kinds: dict[Kind, bool | None] = {
            "tools": wanted.tools_list_changed,
            "prompts": wanted.prompts_list_changed,
            "resources": wanted.resources_list_changed if visit.server is not None else None,
        }
        honoured: dict[str, Any] = {f"{kind}ListChanged": True for kind, is_wanted in kinds.items() if is_wanted}
        async with AsyncExitStack() as held:
            uris = await self._hold(visit, wanted, held)
            if uris:
                honoured["resourceSubscriptions"] = uris

            def put(method: str, params: Mapping[str, Any] | None) -> bool:
                return visit.line.notify(method, {**(params or {}), "_meta": meta})

            stream = Stream(
                visit.caller,
                visit.server,
                [kind for kind, is_wanted in kinds.items() if is_wanted],
                uris,
                put,
                token=visit.identity[-1] or "" if visit.identity else "",
                expires=visit.expires,
            )
            self._streams.open(stream)
            try:
                put("notifications/subscriptions/acknowledged", {"notifications": honoured})
                await stream.ended.wait()
            finally:
                self._streams.close(stream)

    async def _hold(self, visit: Visit, wanted: SubscriptionFilter, held: AsyncExitStack) -> URIs:
        """Subscribe to the resources that a stream is for; those that cannot be had are not promised."""
        uris: URIs = []
        if visit.server is None:
            return uris
        for uri in wanted.resource_subscriptions or ():
            try:
                await self._door.subscribe(visit.caller, visit.server, uri, wanted=True)
            except SquidbotError:
                continue
            held.push_async_callback(self.give_back, uri, visit.caller, visit.server)
            uris.append(uri)
        return uris

    def _may_wait(self, visit: Visit, server: str) -> bool:
        """Whether the server may ask in a way that the client does not know, though it could answer."""
        if not visit.is_modern or not any(name in visit.capabilities for name in ("elicitation", "sampling")):
            return False
        names = self._door.source.server_names()
        return server in names and self._door.source.status(server).protocol in HANDSHAKE_PROTOCOL_VERSIONS

    async def _go_on(self, visit: Visit, which: ToolId, parked: str, given: Mapping[str, Any]) -> ToolResult:
        """Go on with a call that waits, if its caller still may. Raises ToolNotPermitted, MCPError, NotRecorded."""
        await self._door.permissions.refresh(visit.caller)
        if not self._door.permissions.decide(visit.caller, which, None).allowed:
            error = ToolNotPermitted(f"role {visit.caller.role!r} may no longer use {which}")
            await self._door.refuse(visit.caller, which, {}, error)
            raise error
        responses = given.get("inputResponses")
        result = await self._parked.go_on(parked, visit.line, responses if isinstance(responses, Mapping) else {})
        if result is None:
            raise await self._no_state(visit, "tools/call", which)
        return result

    async def _given(
        self, visit: Visit, method: str, which: ToolId, name: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What the client came back with. Raises MCPError for a state that is not its own, which is then on record; NotRecorded."""
        given = self._rounds.given(visit, method, name, params)
        if given is None:
            raise await self._no_state(visit, method, which)
        return given

    async def _no_state(self, visit: Visit, method: str, which: ToolId) -> MCPError:
        """Put on record that somebody came with a state that is not theirs, or no longer. Raises NotRecorded."""
        words = "Invalid or expired requestState"
        await self._door.refuse(visit.caller, which, {}, SquidbotError(words), kind=_KINDS[method])
        return MCPError(INVALID_PARAMS, words)

    async def _tool(self, visit: Visit, name: str, arguments: Mapping[str, Any]) -> ToolId:
        """Which tool a name means here. Raises UnknownTool, which is then on record, or NotRecorded."""
        if visit.server is not None:
            return ToolId(visit.server, name)
        tool = self.lists.tool(None, name)
        if tool is not None:
            return tool.id
        error = UnknownTool(f"there is no tool {name!r}")
        await self._door.refuse_unknown(visit.caller, name, arguments, error)
        raise error


def _wrong_with(params: Mapping[str, Any]) -> str | None:
    """Why something is no call at all, whatever its tool."""
    if not isinstance(params.get("name"), str):
        return "'name' must be a string"
    for key in ("arguments", "_meta"):
        value = params.get(key)
        if value is not None and not isinstance(value, dict):
            return f"{key!r} must be an object"
    return None


def _progress(correspondent: Correspondent, meta: Mapping[str, Any]) -> OnProgress | None:
    token = meta.get("progressToken")
    if not isinstance(token, str | int) or isinstance(token, bool):
        return None

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        await correspondent.progress(token, progress, total, message)

    return tell
