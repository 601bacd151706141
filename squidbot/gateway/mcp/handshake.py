"""The handshake era over HTTP: sessions whose ids say all there is to know, a stream each, and answers to our questions."""

import time
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, REQUEST_CANCELLED
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ServerMessageMetadata
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.domain.recent import Recent
from squidbot.gateway.draining import SHUTTING_DOWN
from squidbot.gateway.mcp.exchange import Dispatch, Exchange, Headers, Post, Reply, reply, stream
from squidbot.gateway.mcp.lane import Lane
from squidbot.gateway.mcp.lists import Kind
from squidbot.gateway.mcp.outbox import Outbox
from squidbot.gateway.mcp.post import Arrival, failure, outcome, request_id
from squidbot.gateway.mcp.reception import Reception
from squidbot.gateway.mcp.seal import Seal
from squidbot.gateway.mcp.session import Session, new_session, unsealed
from squidbot.gateway.mcp.sessions import Sessions, State
from squidbot.gateway.mcp.streams import Stream, Streams
from squidbot.gateway.mcp.visit import Line, NoLine, Visit
from squidbot.gateway.mcp.wire import event
from squidbot.gateway.walls import Wall

_SESSIONS_KNOWN = 4_096
_LATER = ((b"retry-after", b"5"),)


class Handshake:
    """Serves clients that begin with `initialize`."""

    def __init__(self, reception: Reception, sessions: Sessions, streams: Streams, options: EndpointOptions) -> None:
        self._reception = reception
        self._sessions = sessions
        self._streams = streams
        self._options = options
        self._known: Recent[str, Session] = Recent(_SESSIONS_KNOWN)

    async def serve(self, arrival: Arrival, message: Mapping[str, Any]) -> None:
        """Answer one POST."""
        name = request_id(message)
        is_request = "method" in message and "id" in message
        if (is_request and name is None) or not _is_message(message):
            await arrival.refuse(failure(400, INVALID_REQUEST, "The body is no valid JSON-RPC message", name=name))
        elif message.get("method") == "initialize" and name is not None:
            await self._open(arrival, message, name)
        else:
            found = self._found(arrival)
            if isinstance(found, Reply):
                await _send_away(arrival, found)
            elif is_request and name is not None:
                if arrival.learn is not None and arrival.walls is not None and arrival.door.passes(message["method"]):
                    arrival.learn(Lane(self, arrival, arrival.walls, found[0]))
                await self.answer(arrival, arrival, message, name, *found)
            else:
                self._heard(found[0], message)
                await reply(arrival.send, Reply(202))

    async def listen(self, arrival: Arrival) -> None:
        """Serve a session's own stream."""
        if not arrival.accepts_stream:
            await arrival.refuse(failure(406, INVALID_REQUEST, "Not Acceptable: Client must accept text/event-stream"))
            return
        found = self._found(arrival)
        if isinstance(found, Reply):
            await _send_away(arrival, found)
            return
        session, state = found
        if state.end_stream is not None:
            words = "Conflict: Only one SSE stream is allowed per session"
            await reply(arrival.send, failure(409, INVALID_REQUEST, words))
        elif self._streams.is_full:
            await reply(arrival.send, failure(503, INTERNAL_ERROR, "Too many streams are open", headers=_LATER))
        else:
            await self._stream(arrival, session, state)

    async def end(self, arrival: Arrival) -> None:
        """End a session, as its client asks."""
        found = self._found(arrival)
        if isinstance(found, Reply):
            await _send_away(arrival, found)
            return
        self._sessions.end(found[0].id, found[0].expires)
        await reply(arrival.send, Reply(200))

    def _found(self, arrival: Arrival) -> tuple[Session, State] | Reply:
        """The session that a request belongs to, or what is wrong with its claim."""
        version = arrival.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            supported = ", ".join(HANDSHAKE_PROTOCOL_VERSIONS)
            words = f"Bad Request: Unsupported protocol version (supported versions: {supported})"
            return failure(400, INVALID_REQUEST, words)
        shown = arrival.headers.get(MCP_SESSION_ID_HEADER)
        if not shown:
            return failure(400, INVALID_REQUEST, "Bad Request: Missing session ID")
        session = self._unsealed(shown, arrival.seal)
        # Another's session looks like none.
        if session is None or not session.belongs_to(arrival.principal, arrival.server):
            return failure(404, INVALID_REQUEST, "Session not found")
        state = self._sessions.use(session, time.monotonic())
        if state is None:
            return failure(404, INVALID_REQUEST, "Session not found")
        return session, state

    def _unsealed(self, shown: str, seal: Seal) -> Session | None:
        """The session of an id; one that was verified before need not be again, as long as it has not expired."""
        now = time.time()
        known = self._known.get(shown)
        if known is not None and known.expires > now:
            return known
        session = unsealed(shown, seal, now=now)
        if session is not None:
            self._known.put(shown, session)
        return session

    def state_of(self, session: Session) -> State | None:
        """The state of a session that is used now; None if it is over."""
        return self._sessions.use(session, time.monotonic()) if session.expires > time.time() else None

    async def _open(self, arrival: Arrival, message: Mapping[str, Any], name: str | int) -> None:
        params = message.get("params") or {}
        asked = params.get("protocolVersion")
        version = asked if asked in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
        now = time.time()
        expires = min(now + self._options.session_lifetime, arrival.principal.expires or float("inf"))
        session = new_session(
            arrival.principal,
            arrival.server,
            version=version,
            params=params,
            gateway=self._options.gateway,
            expires=expires,
        )

        async def opened() -> Reply:
            visit = self._visit(arrival, session, State(0.0, 0.0, expires), NoLine())
            connection = Connection.for_loop(_NO_ONE)
            runner = ServerRunner(arrival.door, connection, {}, init_options=arrival.door.opening(visit))
            answer = await outcome(
                runner.on_request(Dispatch(name, ServerMessageMetadata(request_context=visit)), "initialize", params),
                name,
                modern=False,
            )
            if answer.message is None or "error" in answer.message:
                return Reply(400, answer.message)
            self._sessions.use(session, time.monotonic())
            shown = (MCP_SESSION_ID_HEADER.encode("ascii"), session.sealed(arrival.seal).encode("ascii"))
            return Reply(200, answer.message, (shown,))

        answer = await opened()
        await (reply(arrival.send, answer) if answer.status == 200 else arrival.refuse(answer))

    async def answer(
        self,
        arrival: Arrival,
        post: Post,
        message: Mapping[str, Any],
        name: str | int,
        session: Session,
        state: State,
        walls: Sequence[Wall] = (),
    ) -> None:
        """Answer a request on `post`, which has the head of `arrival`; the walls that it did not pass hear of it."""
        exchange = Exchange(
            post,
            arrival.company,
            patience=self._options.patience,
            ask=partial(self._sessions.answer, session.id),
            ends_with_the_client=False,
            headers=partial(_session_header, arrival),
        )
        visit = self._visit(arrival, session, state, exchange)
        method, params = message["method"], message.get("params")
        served: Awaitable[dict[str, Any]]
        if arrival.door.passes(method):
            served = arrival.door.answer(visit, method, params)
        else:
            connection = Connection.from_envelope(session.version, None, dict(session.capabilities))
            runner = ServerRunner(arrival.door, connection, {})
            served = runner.on_request(Dispatch(name, ServerMessageMetadata(request_context=visit)), method, params)
        self._sessions.begin(state, name, exchange.scope)
        for wall in walls:
            wall.enter(exchange.scope)

        def cut_short() -> Reply:
            if all(wall.still() for wall in walls):
                return failure(200, REQUEST_CANCELLED, "Request cancelled", name=name)
            return failure(503, INTERNAL_ERROR, SHUTTING_DOWN, name=name, headers=_LATER)

        try:
            await exchange.answer(outcome(served, name, modern=False), otherwise=cut_short)
        finally:
            for wall in walls:
                wall.leave(exchange.scope)
            self._sessions.over(state, name, exchange.scope)

    def _heard(self, session: Session, message: Mapping[str, Any]) -> None:
        """Take a notification, or an answer to a question of ours."""
        if "method" not in message:
            self._sessions.answered(session.id, message)
        elif message["method"] == "notifications/cancelled":
            params = message.get("params")
            if isinstance(params, Mapping):
                self._sessions.cancel(session.id, params.get("requestId"))

    async def _stream(self, arrival: Arrival, session: Session, state: State) -> None:
        outbox = Outbox()

        def put(method: str, params: Mapping[str, Any] | None) -> bool:
            return outbox.put(
                event({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})
            )

        kinds: tuple[Kind, ...] = ("tools", "prompts") if session.server is None else ("tools", "prompts", "resources")
        waiting = Stream(
            arrival.principal.caller("mcp"),
            session.server,
            kinds,
            state.uris,
            put,
            token=arrival.principal.token,
            expires=session.expires,
        )
        state.end_stream = partial(self._streams.close, waiting)
        self._streams.open(waiting)
        try:
            async with anyio.create_task_group() as tasks:

                async def until_ended() -> None:
                    await waiting.ended.wait()
                    outbox.close()
                    await anyio.sleep(self._options.patience)
                    tasks.cancel_scope.cancel()  # whoever does not read does not keep us

                tasks.start_soon(until_ended)
                await stream(
                    arrival.send,
                    arrival.receive,
                    outbox,
                    patience=self._options.patience,
                    headers=_session_header(arrival),
                )
                tasks.cancel_scope.cancel()
        finally:
            state.end_stream = None
            state.used = time.monotonic()
            self._streams.close(waiting)

    def _visit(self, arrival: Arrival, session: Session, state: State, line: Line) -> Visit:
        principal = arrival.principal
        return Visit(
            caller=principal.caller("mcp"),
            server=session.server,
            version=session.version,
            capabilities=session.capabilities,
            line=line,
            owner=f"session {session.id}",
            identity=(principal.member, principal.role, principal.token),
            expires=principal.expires,
            session=session,
            state=state,
        )


class _NoOne:
    """Satisfies the SDK's `Outbound` while a session is being opened: nobody is there yet."""

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        del params, opts
        raise RuntimeError(f"nobody can be asked {method!r} yet")

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        """Nobody is there."""


_NO_ONE = _NoOne()


async def _send_away(arrival: Arrival, answer: Reply) -> None:
    # A session that is lost is nothing that anybody did wrong: clients open another.
    await (reply(arrival.send, answer) if answer.status == 404 else arrival.refuse(answer))


def _session_header(arrival: Arrival) -> Headers:
    shown = arrival.headers[MCP_SESSION_ID_HEADER].encode("latin-1")
    return ((MCP_SESSION_ID_HEADER.encode("ascii"), shown),)


def _is_message(message: Mapping[str, Any]) -> bool:
    if "method" in message:
        params = message.get("params")
        return isinstance(message["method"], str) and (params is None or isinstance(params, dict))
    return "id" in message and ("result" in message) != ("error" in message)
