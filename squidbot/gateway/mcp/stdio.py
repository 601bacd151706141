"""The same door over stdio, for one caller: for clients that only know how to start a command."""

import secrets
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.runner import serve_dual_era_loop
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.services.door import AgentMCPService
from squidbot.core.services.hub import Hub
from squidbot.gateway.mcp.last import Asked, Reading, Writing
from squidbot.gateway.mcp.lists import Lists
from squidbot.gateway.mcp.parked import Parked
from squidbot.gateway.mcp.reception import Reception
from squidbot.gateway.mcp.rounds import Rounds
from squidbot.gateway.mcp.seal import Seal
from squidbot.gateway.mcp.server import DoorServer
from squidbot.gateway.mcp.sessions import Sessions, State
from squidbot.gateway.mcp.streams import TOPICS, Stream, Streams
from squidbot.gateway.mcp.visit import NoLine, Visit

_REQUESTS: Mapping[str, tuple[type[BaseModel], type[BaseModel]]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResultWithTools),
}
_MOST_WAITING = 1_000
_LAST_ANSWERS = 10.0
"""Seconds that calls under way are given when a client has closed its end."""


async def serve_stdio(
    door: AgentMCPService,
    hub: Hub,
    caller: Caller,
    lines: AsyncIterable[bytes],
    *,
    server: str | None = None,
    options: EndpointOptions | None = None,
) -> None:
    """Serve a caller on `lines` and stdout until there are no more; with `server`, that one alone under its own names."""
    options = options or EndpointOptions()
    # Not the SDK's own reading: its thread sits in a read until stdin ends, whoever asks the program to end.
    stdin: Any = _text(lines)
    async with stdio_server(stdin) as (read, write):
        await serve_streams(door, hub, caller, read, write, server=server, options=options)


async def serve_streams(
    door: AgentMCPService,
    hub: Hub,
    caller: Caller,
    read: Any,
    write: Any,
    *,
    server: str | None = None,
    options: EndpointOptions,
) -> None:
    """Serve a caller over one pair of the SDK's streams."""
    lists = Lists(door, options)
    streams, rounds = Streams(door, lists, options), Rounds()
    rounds.seal = Seal(secrets.token_bytes(32))
    sessions = Sessions(hub, options)
    parked = Parked(options)
    reception = Reception(
        door, lists, streams=streams, sessions=sessions, rounds=rounds, parked=parked, page=options.page
    )
    # The stream of news outlives those who listen to it, however all of it ends.
    with hub.listen(TOPICS) as heard:
        async with anyio.create_task_group() as tasks:
            parked.tasks = tasks
            pipe = _Pipe(caller, server, tasks, reception, options)
            served = DoorServer(reception, server, pipe.visit, version=options.version)
            served.add_notification_handler(
                "notifications/initialized", types.NotificationParams, pipe.listener(streams)
            )

            async def hear() -> None:
                async for happening in heard:
                    await streams.tell([happening])

            tasks.start_soon(hear)
            tasks.start_soon(door.follow_grants)
            asked = Asked(_LAST_ANSWERS)
            await serve_dual_era_loop(
                served,
                Reading(read, asked),
                Writing(write, asked),
                lifespan_state={},
                init_options=served.opening(pipe.stranger()),
            )
            tasks.cancel_scope.cancel()


async def _text(lines: AsyncIterable[bytes]) -> AsyncIterator[str]:
    async for line in lines:
        if line.strip():
            yield line.decode("utf-8", "replace")


class _Pipe:
    """The one client at the other end of stdio."""

    def __init__(
        self,
        caller: Caller,
        server: str | None,
        tasks: anyio.abc.TaskGroup,
        reception: Reception,
        options: EndpointOptions,
    ) -> None:
        self._caller = caller
        self._server = server
        self._tasks = tasks
        self._reception = reception
        self._options = options
        self._state = State(0.0, 0.0, 0.0)

    def visit(self, ctx: ServerRequestContext[Any, Any]) -> Visit:
        """Who sends a message: always the same."""
        declared = ctx.session.client_capabilities
        return Visit(
            caller=self._caller,
            server=self._server,
            version=ctx.protocol_version,
            capabilities=declared.model_dump(mode="json", by_alias=True, exclude_none=True) if declared else {},
            line=_SessionLine(ctx, self._tasks, self._options.answer_within),
            owner="stdio",
            identity=(self._caller.member, self._caller.role, ""),
            state=self._state,
        )

    def stranger(self) -> Visit:
        """The client before it has said anything."""
        return Visit(self._caller, self._server, "", {}, NoLine(), "stdio")

    def listener(self, streams: Streams) -> Any:
        """Tells a client of the handshake era of changes, from its `initialized` on."""

        async def listen(ctx: ServerRequestContext[Any, Any], params: types.NotificationParams) -> None:
            del params
            line = _SessionLine(ctx, self._tasks, self._options.answer_within, is_standalone=True)
            kinds: Any = ("tools", "prompts") if self._server is None else ("tools", "prompts", "resources")
            streams.open(Stream(self._caller, self._server, kinds, self._state.uris, line.notify))

        return listen


class _SessionLine:
    """Satisfies `Line` over the SDK's own session; what is told is written in order by one task."""

    def __init__(
        self,
        ctx: ServerRequestContext[Any, Any],
        tasks: anyio.abc.TaskGroup,
        answer_within: float,
        *,
        is_standalone: bool = False,
    ) -> None:
        self._ctx = ctx
        self._answer_within = answer_within
        self._related = None if is_standalone else ctx.request_id
        self._waiting: deque[_Told] = deque()
        self._tasks = tasks
        self._is_writing = False
        self._written = anyio.Event()

    def notify(self, method: str, params: Mapping[str, Any] | None) -> bool:
        if len(self._waiting) >= _MOST_WAITING:
            return False
        self._waiting.append(_Told(method, params))
        if not self._is_writing:
            self._is_writing = True
            self._tasks.start_soon(self._write)
        return True

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if not self._ctx.session.can_send_request:
            return None
        request, result = _REQUESTS[method]
        try:
            answer = await self._ctx.session.send_request(
                request.model_validate({"method": method, "params": dict(params)}),  # type: ignore[arg-type]
                result,
                request_read_timeout_seconds=self._answer_within,
                metadata=ServerMessageMetadata(related_request_id=self._related),
            )
        except (MCPError, ValidationError):
            return None
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def settled(self) -> None:
        while self._is_writing:
            await self._written.wait()

    async def _write(self) -> None:
        self._written = anyio.Event()
        try:
            while self._waiting:
                told = self._waiting.popleft()
                await self._ctx.session.send_notification(told, related_request_id=self._related)  # type: ignore[arg-type]
        finally:
            self._is_writing = False
            self._written.set()


class _Told:
    """A notification as the SDK's session writes it, without a model for each kind."""

    def __init__(self, method: str, params: Mapping[str, Any] | None) -> None:
        self._wire = {"method": method, **({} if params is None else {"params": dict(params)})}

    def model_dump(self, **_how: Any) -> dict[str, Any]:
        return self._wire
