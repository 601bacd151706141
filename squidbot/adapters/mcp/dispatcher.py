"""The wire under a session: requests out, answers and notifications in, over bounded frames.

`FrameDispatcher` is for stdio, SSE and WebSocket. It correlates by ids that nobody can guess, gives every request
one deadline that covers writing and waiting, hands an unreadable answer to the call it belongs to, and drops what
nobody asked for. `StreamDispatcher` (stream_dispatcher.py) does what it can of that for streams of the SDK's own.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import anyio
import anyio.abc

from squidbot.adapters.mcp.attribution import UnderWay
from squidbot.adapters.mcp.channel import Bounds, Channel, ChannelClosed, Frame, Oversize
from squidbot.adapters.mcp.deadlines import Deadlines
from squidbot.adapters.mcp.frames import Noise, Unreadable, is_heavy, possible_ids, read_frame, write_frame
from squidbot.adapters.mcp.inbound import Inbox
from squidbot.adapters.mcp.protocol import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    CallOptions,
    MCPError,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    run_notify_intercept,
)
from squidbot.core.domain.text import glimpse
from squidbot.core.domain.tools import FailureKind
from squidbot.core.domain.weight import weight
from squidbot.core.services.chance import random_bytes

HeaderMap: TypeAlias = Mapping[tuple[str, ...], str]
"""Which arguments of a tool travel as headers too."""
Routing: TypeAlias = Callable[[str, Mapping[str, Any], HeaderMap | None], dict[str, str]]
"""The headers of a request (method, params, what the tool says of its arguments)."""

_PATIENCE = 0.5
"""How long the only waiting call waits on after an unreadable answer that named no id."""
_COURTESY = 1.0
"""How long telling a server that nobody waits any more may take."""
_ABANDONED = 256
"""How many ids of requests that nobody waits for any more are kept, to tell a late answer from a forged one."""
_STANDING = "subscriptions/listen"
"""It waits for as long as the connection lives: an unreadable answer is never its."""
_OUTCOMES = frozenset(("result", "error"))
_CALLS = frozenset(("tools/call", "prompts/get", "resources/read", "completion/complete"))
"""What somebody waits for; all else is asked by ourselves, beside the calls."""
_INTRODUCTIONS = frozenset(("initialize", "server/discover"))
_LARGE = 1_000_000
_INTRODUCTION = 100_000
"""Values in a server's introduction, which nobody has a use for."""
_FAIR_SHARE = 256
"""How many frames are taken before others get the loop."""


class WireError(MCPError):
    """A request that failed on our side of the wire, whose fault it was, and whether it will fail again."""

    def __init__(self, code: int, message: str, kind: FailureKind, *, permanent: bool = False) -> None:
        super().__init__(code, message)
        self.kind: FailureKind = kind
        self.permanent = permanent


class Wire(Protocol):
    """What a conversation needs of a dispatcher."""

    ended: anyio.Event
    counters: Counter[str]

    @property
    def routing(self) -> Routing | None:
        """What makes a request's headers, where there are any."""
        ...

    @property
    def busy(self) -> bool:
        """Whether anybody's call still waits for its answer."""
        ...

    end: ChannelClosed | None
    """Why the peer ended it; nothing if it lives, or if the end was ours."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]: ...

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None: ...

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None: ...


def fresh_id() -> int:
    """An id that a server cannot guess and that every JSON parser keeps exactly."""
    return int.from_bytes(random_bytes(7)) >> 4 | 1


class FrameDispatcher:
    """A `Wire` over a `Channel`."""

    routing = None

    def __init__(
        self,
        channel: Channel,
        *,
        server: str,
        bounds: Bounds,
        encoding: str = "utf-8",
        under_way: UnderWay | None = None,
    ) -> None:
        self.ended = anyio.Event()
        self.counters: Counter[str] = Counter()
        self.end: ChannelClosed | None = None
        self._channel = channel
        self._server = server
        self._bounds = bounds
        self._encoding = encoding
        self._waiting: dict[int | str, asyncio.Future[dict[str, Any]]] = {}
        self._methods: dict[int | str, str] = {}
        """Of those that wait."""
        self._abandoned: deque[int | str] = deque(maxlen=_ABANDONED)
        self._suspected: asyncio.Future[dict[str, Any]] | None = None
        """The only waiting call, which will be failed in a moment."""
        self._under_way = under_way or UnderWay()
        self._deadlines = Deadlines()
        self._inbox = Inbox(self._send, server=server, bounds=bounds, counters=self.counters, under_way=self._under_way)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._intercept: OnNotifyIntercept | None = None

    @property
    def busy(self) -> bool:
        """Whether anybody's call still waits for its answer."""
        return not _CALLS.isdisjoint(self._methods.values())

    # Outbound

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and wait for its result. Raises MCPError, and WireError where it failed on this side."""
        if self.ended.is_set():
            raise self._closed()
        opts = opts or {}
        request_id = opts.get("request_id")
        if request_id is None:
            request_id = fresh_id()
        elif request_id in self._waiting:
            raise ValueError(f"request id {request_id!r} is already in flight")
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        self._methods[request_id] = method
        try:
            frame = self._request(method, params, request_id, opts)
            with self._deadlines.within(opts.get("timeout")) as deadline:
                self._under_way.limit(request_id, deadline)
                await self._channel.send(frame, request_id)
                result = await answer
                self._under_way.met(request_id)
        except ChannelClosed as end:
            self._lose(end)
            raise self._closed() from None
        except TimeoutError:
            self._abandon(request_id, opts, "timed out")
            raise WireError(REQUEST_TIMEOUT, f"no answer to {method} in {opts.get('timeout'):g} s", "timeout") from None
        except asyncio.CancelledError:
            self._abandon(request_id, opts, "the caller no longer waits")
            raise
        else:
            # The answer is here: a slow listener to its progress must not turn it into a timeout.
            await self._inbox.told(request_id)
            return bearable(method, result)
        finally:
            del self._waiting[request_id], self._methods[request_id]
            self._inbox.forget(request_id)
            if answer.done() and not answer.cancelled():
                answer.exception()

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification; to a peer that is gone it is dropped."""
        del opts
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        await self._send(message, None)

    def _request(
        self, method: str, params: Mapping[str, Any] | None, request_id: int | str, opts: CallOptions
    ) -> bytes:
        outgoing = dict(params) if params else {}
        if (on_progress := opts.get("on_progress")) is not None:
            outgoing["_meta"] = {**(outgoing.get("_meta") or {}), "progressToken": request_id}
            self._inbox.expect_progress(request_id, on_progress)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if outgoing:
            message["params"] = outgoing
        return write_frame(message)

    def _abandon(self, request_id: int | str, opts: CallOptions, reason: str) -> None:
        """Tell the server, in the background, that nobody waits any more."""
        self._abandoned.append(request_id)
        if self._tasks is None or not opts.get("cancel_on_abandon", True):
            return
        params = {"requestId": request_id, "reason": reason}
        self._tasks.start_soon(self.notify, "notifications/cancelled", params)

    async def _send(self, message: Mapping[str, Any], request_id: int | str | None) -> None:
        try:
            async with asyncio.timeout(_COURTESY):
                await self._channel.send(write_frame(message), request_id)
        except ChannelClosed as end:
            self._lose(end)
        except TimeoutError:
            self.counters["unsent"] += 1

    def _lose(self, end: ChannelClosed) -> None:
        """The server takes nothing any more; whatever it may still say, it is as good as gone."""
        self.end = self.end or end
        self._finish()

    def _closed(self) -> WireError:
        return WireError(CONNECTION_CLOSED, str(self.end or "the connection is closed"), "unavailable")

    # Inbound

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Take frames until there are no more; then fail whatever still waits."""
        self._intercept = on_notify_intercept
        try:
            async with anyio.create_task_group() as self._tasks:
                self._inbox.open(self._tasks, on_request, on_notify)
                task_status.started()
                try:
                    await self._pump()
                except ChannelClosed as end:
                    self._lose(end)
                except MemoryError:
                    self._lose(ChannelClosed("this machine has no more memory for what it sends"))
                self._tasks.cancel_scope.cancel()
        finally:
            self._tasks = None
            self._finish()

    async def _pump(self) -> None:
        taken = 0
        while True:
            for frame in await self._channel.receive():
                self._take(frame)
                taken += 1
                if taken % _FAIR_SHARE == 0:
                    await asyncio.sleep(0)

    def _finish(self) -> None:
        self.ended.set()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(self._closed())

    def _take(self, frame: Frame) -> None:
        try:
            if isinstance(frame, Oversize):
                raise Unreadable(f"it is too large (limit {frame.limit} bytes)", possible_ids(frame.head, frame.tail))
            message = read_frame(frame, self._bounds, encoding=self._encoding)
            if "method" in message and is_heavy(frame):
                self._inbox.too_heavy(message)
            else:
                self._route(message, len(frame))
        except Noise:
            self._odd("noise", "writes to its output what is no message: {!r}", bytes(frame[:120]))  # type: ignore[index]
        except Unreadable as bad:
            self._odd("unreadable", "sent a message that cannot be read: {}", bad.reason)
            self._blame(bad)

    def _route(self, message: dict[str, Any], size: int) -> None:
        method = message.get("method")
        if isinstance(method, str):
            if not _OUTCOMES.isdisjoint(message):
                raise Unreadable("it is a question and an answer at once", _id_in(message))
            params = message.get("params")
            params = params if isinstance(params, dict) else None
            if "id" in message:
                self._inbox.request(message["id"], method, params, size)
            elif self._inbox.progress(method, params) and not run_notify_intercept(self._intercept, method, params):
                self._inbox.notification(method, params, size)
            return
        answer = self._awaited(message.get("id"))
        if answer is None:
            self._unawaited(message)
            return
        if (error := _outcome_problem(message)) is not None:
            answer.set_exception(WireError(PARSE_ERROR, f"the server's answer is not valid: {error}", "protocol"))
        elif "error" in message:
            answer.set_exception(peer_error(message["error"]))
        else:
            answer.set_result(message["result"])

    def _unawaited(self, message: Mapping[str, Any]) -> None:
        """An answer to nothing that waits; one without an id is to the only call there is, if there is only one."""
        request_id = message.get("id")
        if isinstance(request_id, bool) or not isinstance(request_id, int | str):
            error = message.get("error")
            words = error.get("message") if isinstance(error, dict) else None
            self._blame(Unreadable(f"it answers no request by its id{f', and says: {words}' if words else ''}"))
        elif request_id in self._abandoned:
            self.counters["late"] += 1
        else:
            self._odd("unasked", "answered what nobody asked, or answered twice", None)

    def _awaited(self, request_id: Any) -> "asyncio.Future[dict[str, Any]] | None":
        if isinstance(request_id, bool) or not isinstance(request_id, int | str):
            return None
        answer = self._waiting.get(request_id)
        if answer is None and isinstance(request_id, str) and request_id.isdecimal() and len(request_id) < 20:
            answer = self._waiting.get(int(request_id))
        return None if answer is None or answer.done() else answer

    def _blame(self, bad: Unreadable) -> None:
        """Fail the call that `bad` answers; if that cannot be told, the only one that waits, after a moment."""
        failure = WireError(PARSE_ERROR, f"the server's answer cannot be read: {bad.reason}", "protocol")
        for request_id in bad.ids:
            if (answer := self._awaited(request_id)) is not None:
                answer.set_exception(failure)
                return
        waiting = [
            answer
            for request_id, answer in self._waiting.items()
            if not answer.done() and self._methods[request_id] != _STANDING
        ]
        if len(waiting) == 1 and waiting[0] is not self._suspected:
            self._suspected = waiting[0]  # once: a server may say a hundred thousand such things in a second
            asyncio.get_running_loop().call_later(_PATIENCE, _fail, waiting[0], failure)

    def _odd(self, kind: str, message: str, detail: object) -> None:
        self._inbox.odd(kind, message, detail)


def _fail(answer: "asyncio.Future[dict[str, Any]]", failure: WireError) -> None:
    if not answer.done():
        answer.set_exception(failure)


def bearable(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """A result that may go on; the SDK looks at every part of how a server introduces itself. Raises WireError."""
    if method in _INTRODUCTIONS and weight(result, _INTRODUCTION, characters=_LARGE) > _INTRODUCTION:
        reason = f"it has more than {_INTRODUCTION} values in it"
        words = f"the server's answer to {method} cannot be used: {reason}"
        raise WireError(PARSE_ERROR, words, "protocol", permanent=True)
    return result


def _id_in(message: Mapping[str, Any]) -> tuple[int | str, ...]:
    request_id = message.get("id")
    return (request_id,) if isinstance(request_id, int | str) else ()


def _outcome_problem(message: Mapping[str, Any]) -> str | None:
    if "error" in message:
        return "it has a result and an error" if "result" in message else None
    if "result" not in message:
        return "it has neither a result nor an error"
    return None if isinstance(message["result"], dict) else "its result is no object"


def peer_error(error: Any) -> MCPError:
    """The server's own error, as far as it is one."""
    if not isinstance(error, dict):
        return WireError(INTERNAL_ERROR, f"the server's error is no object: {glimpse(error, 200)}", "protocol")
    code, message = error.get("code"), error.get("message")
    return MCPError(
        code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message if isinstance(message, str) and not message.isspace() and message else "the server gave no reason",
        error.get("data"),
    )
