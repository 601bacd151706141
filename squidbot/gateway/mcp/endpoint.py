"""The MCP endpoint as an ASGI application: `/mcp` for all servers of a role, `/mcp/{server}` for one of them.

Who asks is known before: `scope["state"]["principal"]`. The endpoint is entered for as long as it serves; `drain` ends its
streams first, so that the server under it can end.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.types import Receive, Scope, Send

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.domain.errors import NotRecorded
from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.members import Principal
from squidbot.core.ports import ToolSource
from squidbot.core.services.door import AgentMCPService
from squidbot.core.services.hub import Hub
from squidbot.core.services.permissions import Permissions
from squidbot.core.services.refusals import Refusals
from squidbot.gateway.mcp.exchange import Company, Reply, reply
from squidbot.gateway.mcp.handshake import Handshake
from squidbot.gateway.mcp.lists import Lists
from squidbot.gateway.mcp.parked import Parked
from squidbot.gateway.mcp.post import Arrival, failure
from squidbot.gateway.mcp.reception import Reception
from squidbot.gateway.mcp.refusals import NOT_RECORDED
from squidbot.gateway.mcp.rounds import Rounds
from squidbot.gateway.mcp.seal import Seal
from squidbot.gateway.mcp.server import DoorServer
from squidbot.gateway.mcp.sessions import Sessions
from squidbot.gateway.mcp.stateless import Stateless
from squidbot.gateway.mcp.streams import TOPICS, Streams
from squidbot.gateway.mcp.visit import Visit
from squidbot.gateway.mcp.wire import Malformed, decoded
from squidbot.gateway.walls import LEARN, LEAVING, WALLS, passed

_log = logging.getLogger(__name__)
_SWEEP = 30.0
_PATIENT = 4
"""So many times the largest body is read before a client is cut off."""
_BREATH = 0.02
"""Seconds for which happenings are gathered, so that a burst of them is one look at the lists."""


class MCPEndpoint:
    """Every MCP client's way to the door, over HTTP."""

    def __init__(
        self,
        door: AgentMCPService,
        hub: Hub,
        *,
        key: Callable[[], Awaitable[bytes]],
        options: EndpointOptions | None = None,
    ) -> None:
        self._door = door
        self._hub = hub
        self._key = key
        self._options = options or EndpointOptions()
        self._refusals = Refusals(door.recorder, "request")
        self._seal: Seal | None = None
        self._lists = Lists(door, self._options)
        self._streams = Streams(door, self._lists, self._options)
        self._sessions = Sessions(hub, self._options)
        self._rounds = Rounds()
        self._parked = Parked(self._options)
        self._reception = Reception(
            door,
            self._lists,
            streams=self._streams,
            sessions=self._sessions,
            rounds=self._rounds,
            parked=self._parked,
            page=self._options.page,
        )
        self._servers: dict[str | None, DoorServer] = {}
        self._handshake = Handshake(self._reception, self._sessions, self._streams, self._options)
        self._stateless = Stateless(self._reception, self._streams, self._options)
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup | None = None
        self._company: Company | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            heard = stack.enter_context(self._hub.listen(TOPICS))
            self._tasks = await stack.enter_async_context(anyio.create_task_group())
            self._company = Company(self._tasks)
            self._sessions.give_back = self._give_back
            self._parked.tasks = self._tasks
            self._tasks.start_soon(self._hear, heard)
            self._tasks.start_soon(self._sweep)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drain()
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()
        await self._stack.__aexit__(kind, error, trace)

    def drain(self) -> None:
        """End all streams and take no new ones; requests are still answered."""
        self._streams.drain()

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        principal = scope.get("state", {}).get("principal")
        if not isinstance(principal, Principal):
            await reply(send, failure(401, INVALID_REQUEST, "Unauthorized"))
            return
        try:
            refusal = await self._refusal(scope, principal)
            if refusal is None:
                passed(scope, _Granted(self._door.permissions, next(iter(_parts(scope)), None), self._door.source))
                await self._serve(scope, receive, send, principal)
            else:
                await self._note(principal, next(iter(_parts(scope)), None), refusal)
                await reply(send, refusal)
        except NotRecorded:  # the key is where the record is
            await reply(send, failure(503, INTERNAL_ERROR, NOT_RECORDED, headers=((b"retry-after", b"5"),)))

    async def _refusal(self, scope: Scope, principal: Principal) -> Reply | None:
        """Why there is nothing here for this principal; what a role does not have looks like what does not exist."""
        parts = _parts(scope)
        caller = principal.caller("mcp")
        with suppress(NotRecorded):  # whatever is done then asks again, and says so in its own way
            await self._door.permissions.refresh(caller)
        if len(parts) > 1:
            return failure(404, INVALID_REQUEST, "Not found")
        if not caller.role or not self._door.permissions.mapper.get_servers_for_role(caller.role):
            return failure(403, INVALID_REQUEST, "This token stands for no role that has any tools")
        if parts and not (
            parts[0] in self._door.source.server_names() and self._door.permissions.has_server(caller, parts[0])
        ):
            return failure(404, INVALID_REQUEST, "Not found")
        return None

    async def _serve(self, scope: Scope, receive: Receive, send: Send, principal: Principal) -> None:
        if self._seal is None:
            self._seal = Seal(await self._key())
            self._rounds.seal = self._seal
        server = next(iter(_parts(scope)), None)
        if self._company is None:
            raise RuntimeError("the endpoint is not open")
        arrival = Arrival(
            headers=_folded(scope["headers"]),
            raw=scope["headers"],
            principal=principal,
            server=server,
            door=self._door_of(server),
            seal=self._seal,
            send=send,
            receive=receive,
            note=self._note,
            leaving=scope.get(LEAVING),
            walls=scope.get(WALLS),
            learn=scope.get(LEARN),
            company=self._company,
        )
        match scope["method"]:
            case "POST":
                await self._post(arrival)
            case "GET" if not self._stateless.is_meant(arrival):
                await self._handshake.listen(arrival)
            case "DELETE" if not self._stateless.is_meant(arrival):
                await self._handshake.end(arrival)
            case _:
                allowed = b"POST" if self._stateless.is_meant(arrival) else b"GET, POST, DELETE"
                await reply(send, failure(405, INVALID_REQUEST, "Method not allowed", headers=((b"allow", allowed),)))

    async def _post(self, arrival: Arrival) -> None:
        refusal = arrival.unacceptable()
        if refusal is not None:
            await arrival.refuse(refusal)
            return
        try:
            body = await _body(arrival, self._options.largest_body)
            message = decoded(body)
        except _Gone:
            return
        except _TooLarge:
            too_large = f"The body is larger than {self._options.largest_body} bytes"
            await arrival.refuse(failure(413, INVALID_REQUEST, too_large, headers=((b"connection", b"close"),)))
            return
        except Malformed as error:
            await arrival.refuse(failure(400, error.code, error.message))
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            await arrival.refuse(failure(400, INVALID_REQUEST, "The body must be a single JSON-RPC message"))
            return
        if self._stateless.is_meant(arrival, message):
            await self._stateless.serve(arrival, message)
        else:
            await self._handshake.serve(arrival, message)

    async def _note(self, principal: Principal, server: str | None, answer: Reply) -> None:
        """Put on record that a request came to nothing; what was in it is not kept."""
        error = (answer.message or {}).get("error", {})
        what = {"status": answer.status, "code": error.get("code")}
        caller = replace(principal.caller("mcp"), role=principal.standing)
        await self._refusals.note(caller, str(error.get("message", "")), what, server=server or "")

    def _door_of(self, server: str | None) -> DoorServer:
        found = self._servers.get(server)
        if found is None:
            found = DoorServer(self._reception, server, _visit_of, version=self._options.version)
            self._servers[server] = found
        return found

    def _give_back(self, uri: str, caller: Caller, server: str) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._reception.give_back, uri, caller, server)

    async def _hear(self, heard: Any) -> None:
        async for happening in heard:
            happenings = [happening]
            if happening.topic != "relay":
                await anyio.sleep(_BREATH)
            while heard.statistics().current_buffer_used:
                happenings.append(heard.receive_nowait())
            try:
                await self._heard(happenings)
            except Exception:  # noqa: BLE001
                # What one process says must not end another.
                _log.exception("what happened could not be told to clients")

    async def _heard(self, happenings: Sequence[Happening]) -> None:
        for one in happenings:
            if one.topic == "relay":
                self._sessions.relayed(one, time.monotonic())
        told = [one for one in happenings if one.topic != "relay"]
        if told:
            await self._streams.tell(told)

    async def _sweep(self) -> None:
        while True:
            await anyio.sleep(min(_SWEEP, self._options.session_idle / 4))
            self._sessions.sweep(time.monotonic())
            self._sessions.expire(time.time())
            self._streams.sweep(time.time())


class _Granted:
    """Satisfies `Wall`: a role has a part of the door as long as nobody has changed who may do what."""

    __slots__ = ("_mapper", "_permissions", "_server", "_source")

    def __init__(self, permissions: Permissions, server: str | None, source: ToolSource) -> None:
        self._permissions = permissions
        self._mapper = permissions.mapper
        self._server = server
        self._source = source

    def still(self) -> bool:
        has_it = self._server is None or self._server in self._source.server_names()
        return has_it and self._permissions.mapper is self._mapper

    def enter(self, work: anyio.CancelScope) -> None:
        """Nothing is held."""

    def leave(self, work: anyio.CancelScope) -> None:
        """Nothing is held."""


def _visit_of(ctx: Any) -> Visit:
    visit: Visit = ctx.request
    return visit


def _parts(scope: Scope) -> list[str]:
    """The path below `/mcp`, mounted there or not."""
    root, path = scope.get("root_path", ""), scope["path"]
    inner = path[len(root) :] if root and path.startswith(root) else path
    parts = [part for part in inner.split("/") if part]
    return parts if root.endswith("/mcp") else parts[1:]


def _folded(raw: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; one that comes twice is one with a comma."""
    folded: dict[str, str] = {}
    for key, content in raw:
        name, value = key.decode("latin-1").lower(), content.decode("latin-1").strip()
        folded[name] = f"{folded[name]}, {value}" if name in folded else value
    return folded


class _TooLarge(Exception):
    """More came than may come."""


class _Gone(Exception):
    """Whoever sent it left before its end: there is nobody to answer."""


async def _body(arrival: Arrival, largest: int) -> bytes:
    """The body. Raises _TooLarge: then it is not kept, but read on for a while, so that the client sees why. Raises _Gone."""
    announced = arrival.headers.get("content-length", "")
    if announced.isdigit() and int(announced[:12]) > _PATIENT * largest:
        raise _TooLarge
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await arrival.receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > largest:
            chunks.clear()
        else:
            chunks.append(chunk)
        is_whole = not message.get("more_body")
        if size > _PATIENT * largest or (is_whole and size > largest):
            raise _TooLarge
        if is_whole:
            return b"".join(chunks)
