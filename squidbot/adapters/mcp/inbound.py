"""What a server sends unasked: its requests, notifications and progress, bounded in rate and number."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeGuard

import anyio
import anyio.abc
from loguru import logger
from pydantic import ValidationError

from squidbot.adapters.mcp.attribution import LOG, NOBODY, Addressee, UnderWay, concerning
from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.frames import HEAVY
from squidbot.adapters.mcp.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallOptions,
    MCPError,
    OnNotify,
    OnRequest,
    ProgressFn,
)

Send = Callable[[Mapping[str, Any], int | str | None], Coroutine[Any, Any, None]]

_AT_ONCE = 32
"""Requests of a server that are answered at the same time, until it has taken the answer; more are refused."""
_LONGEST_ID = 1_000
_LONGEST_METHOD = 1_000
_LONGEST_NEWS = 4_096
"""Characters of one word on a request's progress."""
_REFUSALS = 1_000
"""Refusals that wait to be sent; beyond that a server that reads none of them is told nothing."""
_BACKLOG, _BACKLOG_VOLUME = 1_000, 10
"""Notifications that wait for their handler, and for how many seconds' volume of them there is room; older ones give way."""
_NEWS = 100
"""Words on one request's progress that wait for a slow listener."""
_LISTENING = 1.0
"""Seconds for which a result waits for a slow listener to its progress."""
_REMIND = 60.0
"""Seconds between two warnings of the same kind about one server."""
_CHANGES = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))


class InboundContext:
    """What there is to know of one message of a server, as the SDK's `DispatchContext` has it."""

    transport = None
    message_metadata = None

    def __init__(self, send: Send, request_id: int | str | None = None) -> None:
        self.request_id = request_id
        self.cancel_requested = anyio.Event()
        self._send = send

    @property
    def can_send_request(self) -> bool:
        return False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """A client's callbacks ask the server nothing in return."""
        del params, opts
        raise MCPError(INTERNAL_ERROR, f"no {method} from within an answer")

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        del opts
        await self._send({"jsonrpc": "2.0", "method": method, "params": params or {}}, None)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Clients report no progress."""


class Inbox:
    """One server's requests, notifications and progress, on their way to whoever handles them."""

    def __init__(
        self, send: Send, *, server: str, bounds: Bounds, counters: Counter[str], under_way: UnderWay | None = None
    ) -> None:
        self._send = send
        self._server = server
        self._under_way = under_way or UnderWay()
        self._rate = bounds.notifications
        self._volume = bounds.words
        self._most_asked = bounds.bytes
        self._counters = counters
        self._window = (0.0, 0, 0)
        self._warned: dict[str, float] = {}
        self._answering: dict[int | str, anyio.CancelScope] = {}
        self._asked = 0
        """Bytes of the questions that are being answered: a person may take minutes over them."""
        self._untaken = 0
        """Answers that are being sent: a server that reads none of them must not have us keep one for each question."""
        self._progress: dict[int | str, _Progress] = {}
        self._changes: dict[str, Mapping[str, Any] | None] = {}
        self._backlog: deque[tuple[str, Mapping[str, Any] | None, Addressee, int]] = deque()
        self._waiting = 0
        """Bytes of the notifications in it."""
        self._arrived = asyncio.Event()
        self._refusals: deque[tuple[int | str, str]] = deque()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._on_request: OnRequest | None = None

    def open(self, tasks: anyio.abc.TaskGroup, on_request: OnRequest, on_notify: OnNotify) -> None:
        """Begin to hand things on, in tasks of `tasks`."""
        self._tasks = tasks
        self._on_request = on_request
        tasks.start_soon(self._deliver, on_notify)

    def odd(self, kind: str, message: str, detail: object) -> None:
        """Count an oddity, and speak of it at most once a minute."""
        self._counters[kind] += 1
        now = time.monotonic()
        if now - self._warned.get(kind, -_REMIND) >= _REMIND:
            self._warned[kind] = now
            logger.bind(server=self._server).warning(f"server {self._server!r} {message}", detail)

    # Progress

    def expect_progress(self, token: int | str, on_progress: ProgressFn) -> None:
        """Hand on what is said of the progress of the request `token`."""
        self._progress[token] = _Progress(on_progress)

    async def told(self, token: int | str) -> None:
        """Wait a moment for what was said of `token` to be heard, so that it comes before the result."""
        if (heard := self._progress.get(token)) is not None:
            with anyio.move_on_after(_LISTENING):
                await heard.idle.wait()

    def forget(self, token: int | str) -> None:
        """The request has ended; what is said of its progress no longer matters."""
        self._progress.pop(token, None)

    def progress(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Take a progress notification in, if it is one; True means that it is something else."""
        if method != "notifications/progress":
            return True
        match params:
            case {"progressToken": int() | str() as token, "progress": said}:
                heard, done = self._progress.get(token), _number(said)
                if (
                    heard is not None
                    and done is not None
                    and self._tasks is not None
                    and heard.update(done, params or {})
                ):
                    self._tasks.start_soon(heard.tell)
        return False

    # Notifications

    def notification(self, method: str, params: Mapping[str, Any] | None, size: int = 0) -> None:
        """Queue a notification of `size` bytes, within the rate and the volume that one server may have."""
        if method == "notifications/cancelled":
            self._cancel((params or {}).get("requestId"))
            return
        if method in _CHANGES:
            # One that waits stands for all that follow, so a storm of them costs nothing and the last is never lost.
            self._changes[method] = params
            self._arrived.set()
            return
        second, seen, told = self._window
        now = time.monotonic()
        if now - second >= 1.0:
            second, seen, told = now, 0, 0
        self._window = (second, seen + 1, told)
        if seen >= self._rate:
            self.odd(
                "dropped_notifications", "sends more than {} notifications a second; the rest is dropped", self._rate
            )
            return
        if told + size > self._volume:
            self.odd("dropped_notifications", "tells more than {} bytes a second; the rest is dropped", self._volume)
            return
        self._window = (second, seen + 1, told + size)
        addressee = self._under_way.whose(is_log=True) if method == LOG else NOBODY
        self._backlog.append((method, params, addressee, size))
        self._waiting += size
        while len(self._backlog) > _BACKLOG or self._waiting > _BACKLOG_VOLUME * self._volume:
            self._forget_oldest()
        self._arrived.set()

    def _forget_oldest(self) -> None:
        _, _, addressee, size = self._backlog.popleft()
        self._waiting -= size
        self._counters["unheard"] += 1
        if addressee.call is not None:
            addressee.call.told()

    async def _deliver(self, on_notify: OnNotify) -> None:
        context = InboundContext(self._send)
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._changes or self._backlog:
                method, params, addressee, size = (
                    (*self._changes.popitem(), NOBODY, 0) if self._changes else self._backlog.popleft()
                )
                self._waiting -= size
                try:
                    with concerning(addressee):
                        await on_notify(context, method, params)
                except Exception as error:  # noqa: BLE001 - a handler's fault must not end the connection
                    logger.bind(server=self._server).warning("handling {!r} failed: {!r}", method, error)
                await asyncio.sleep(0)

    # Requests

    def request(self, request_id: Any, method: str, params: Mapping[str, Any] | None, size: int = 0) -> None:
        """Answer a server's request, which has `size` bytes, in a task of its own."""
        if self._tasks is None or not _is_id(request_id):
            self.odd("unreadable", "asked with an id that is none: {!r}", str(request_id)[:80])
            return
        if len(method) > _LONGEST_METHOD:
            self.odd("unreadable", "asks by a method of more than {} characters", _LONGEST_METHOD)
            self._refuse(request_id, "no such method")
            return
        too_many = len(self._answering) + self._untaken >= _AT_ONCE or request_id in self._answering
        if too_many or (self._asked and self._asked + size > self._most_asked):
            self.odd("refused_requests", "asks more than {} things at once; the rest is refused", _AT_ONCE)
            self._refuse(request_id, "too many requests at once")
            return
        self._answering[request_id] = anyio.CancelScope()
        self._asked += size
        self._tasks.start_soon(self._answer, request_id, method, params, self._under_way.whose(), size)

    def too_heavy(self, message: Mapping[str, Any]) -> None:
        """Take note of a request or a notification that has too much in it to be handled."""
        self.odd("heavy", "asks or tells something with more than {} values in it, which is left out", HEAVY)
        if _is_id(request_id := message.get("id")):
            self._refuse(request_id, f"a request with more than {HEAVY} values in it")

    def _refuse(self, request_id: int | str, words: str) -> None:
        """Say no, in the background; to a server that takes no answers so many may wait and no more."""
        if len(self._refusals) >= _REFUSALS:
            self._counters["unsent"] += 1
            return
        self._refusals.append((request_id, words))
        if len(self._refusals) == 1 and self._tasks is not None:
            self._tasks.start_soon(self._say_no)

    async def _say_no(self) -> None:
        while self._refusals:
            request_id, words = self._refusals[0]
            error = {"code": INTERNAL_ERROR, "message": words}
            await self._send({"jsonrpc": "2.0", "id": request_id, "error": error}, None)
            self._refusals.popleft()

    async def _answer(
        self, request_id: int | str, method: str, params: Mapping[str, Any] | None, addressee: Addressee, size: int
    ) -> None:
        assert self._on_request is not None
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        try:
            with self._answering[request_id] as scope, concerning(addressee):
                context = InboundContext(self._send, request_id)
                reply["result"] = await self._on_request(context, method, params)
        except MCPError as error:
            reply["error"] = error.error.wire()
        except ValidationError:
            reply["error"] = {"code": INVALID_PARAMS, "message": "Invalid request parameters"}
        except Exception as error:  # noqa: BLE001 - a callback's fault is told to the server, and ends nothing
            logger.bind(server=self._server).warning("answering {!r} failed: {!r}", method, error)
            reply["error"] = {"code": INTERNAL_ERROR, "message": "the client could not answer"}
        finally:
            del self._answering[request_id]
            self._asked -= size
        if scope.cancel_called:
            return
        self._untaken += 1
        try:
            await self._send(reply, None)
        finally:
            self._untaken -= 1

    def _cancel(self, request_id: Any) -> None:
        scope = self._answering.get(request_id) if isinstance(request_id, int | str) else None
        if scope is not None:
            scope.cancel()


def _is_id(value: Any) -> TypeGuard[int | str]:
    """Whether a request can be answered by it; a long one would be kept, and sent back, as often as it comes."""
    return (
        len(value) <= _LONGEST_ID if isinstance(value, str) else isinstance(value, int) and not isinstance(value, bool)
    )


class _Progress:
    """What is said of one request's progress, told in order; a slow listener misses the oldest."""

    def __init__(self, on_progress: ProgressFn) -> None:
        self._on_progress = on_progress
        self._news: deque[tuple[float, float | None, str | None]] = deque(maxlen=_NEWS)
        self.idle = asyncio.Event()
        self.idle.set()

    def update(self, done: float, params: Mapping[str, Any]) -> bool:
        """Note the news; True if somebody must be set to telling it."""
        message = params.get("message")
        said = message[:_LONGEST_NEWS] if isinstance(message, str) else None
        self._news.append((done, _number(params.get("total")), said))
        was_idle = self.idle.is_set()
        self.idle.clear()
        return was_idle

    async def tell(self) -> None:
        """Hand on what is new, until nothing is."""
        try:
            while self._news:
                await self._on_progress(*self._news.popleft())
        except Exception as error:  # noqa: BLE001 - a listener's fault is not the call's
            logger.warning("a listener for progress failed: {!r}", error)
        finally:
            self.idle.set()


def _number(value: Any) -> float | None:
    """A number as we can count with it; JSON knows some that are too large for that."""
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None
