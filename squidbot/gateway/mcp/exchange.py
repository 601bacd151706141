"""One POST and its answer: the headers wait until it ends, or something else must go out first, or some time has passed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Protocol, TypeAlias

import anyio
from anyio.abc import TaskGroup
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import MessageMetadata
from mcp.shared.transport_context import TransportContext
from starlette.types import Receive, Send

from squidbot.gateway.mcp.outbox import Outbox
from squidbot.gateway.mcp.wire import encoded, event

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
Ask: TypeAlias = Callable[[Callable[[str], bool]], Awaitable[Mapping[str, Any] | None]]
"""Waits for the client's answer to what is put on its way under the id that it gives."""

STREAM: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
PING = b": ping\r\n\r\n"
_BREATH = 1.0
"""Seconds in which an answer is just waited for, where we are told that a client leaves."""
_LOOK = 0.5
"""Seconds between two looks at who has waited for so long."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and the message that goes with it, if any."""

    status: int
    message: Mapping[str, Any] | None = None
    headers: Headers = ()


class Post(Protocol):
    """What an exchange needs of a request."""

    @property
    def send(self) -> Send: ...

    @property
    def receive(self) -> Receive: ...

    async def reply(self, answer: Reply) -> None:
        """Send an answer whole, if nothing was sent before."""
        ...

    @property
    def leaving(self) -> set[Callable[[], object]] | None:
        """Callbacks for when the client hangs up, if somebody calls them."""
        ...


class Beside:
    """What there is beside a call once something else than its answer has to be thought of."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.gone = anyio.Event()
        """Set when the client does not listen any more."""
        self.over = anyio.Event()
        self.scope = anyio.CancelScope()
        self.fault: Exception | None = None


@dataclass
class Dispatch:
    """Satisfies the SDK's `DispatchContext`; our own way back is the visit's line, which travels in the metadata."""

    request_id: str | int | None
    message_metadata: MessageMetadata
    transport: TransportContext = field(
        default_factory=lambda: TransportContext(kind="streamable-http", can_send_request=False)
    )
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        del params, opts
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Nothing of ours is sent this way."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Nothing of ours is sent this way."""


async def reply(send: Send, answer: Reply) -> None:
    """Send an answer whole."""
    body = b"" if answer.message is None else encoded(answer.message)
    kind: Headers = () if answer.message is None else ((b"content-type", b"application/json"),)
    headers = [*kind, (b"content-length", str(len(body)).encode("ascii")), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Company:
    """Begins something beside those exchanges that last: one timer for all of them, since nearly none does."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.start = tasks.start_soon
        self._alone: dict[Exchange, float] = {}
        """In the order in which they began."""
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, exchange: "Exchange", now: float) -> None:
        """Look after one that begins, until `leave`."""
        self._alone[exchange] = now
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def leave(self, exchange: "Exchange") -> None:
        """It is over."""
        self._alone.pop(exchange, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() - _BREATH
        late = [exchange for exchange, began in takewhile(lambda item: item[1] <= due, self._alone.items())]
        for exchange in late:
            del self._alone[exchange]
            exchange.begin()
        self._timer = loop.call_later(_LOOK, self._look) if self._alone else None


class Exchange:
    """A POST under way, and the `Line` to whoever sent it.

    Most are answered before anything but the answer has to be thought of: for those nothing is begun.
    """

    def __init__(
        self,
        post: Post,
        company: Company,
        *,
        patience: float,
        ask: Ask | None = None,
        ends_with_the_client: bool,
        headers: Callable[[], Headers] = tuple,
    ) -> None:
        self._post = post
        self._company = company
        self._patience = patience
        self._ask = ask
        self._headers = headers
        self._ends_with_the_client = ends_with_the_client
        self._began = 0.0
        self._answers: list[Reply] = []
        self._beside: Beside | None = None
        self.scope = anyio.CancelScope()
        """Of the work: cancelling it ends the exchange."""

    # What goes out ahead of the answer, on the POST's own stream

    def notify(self, method: str, params: Mapping[str, Any] | None) -> bool:
        message = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        return self.begin().outbox.put(event(message))

    async def settled(self) -> None:
        """What was told is in the same outbox as the answer will be."""

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        beside = self.begin()
        if self._ask is None or beside.gone.is_set():
            return None
        answer: Mapping[str, Any] | None = None

        def send(name: str) -> bool:
            return beside.outbox.put(event({"jsonrpc": "2.0", "id": name, "method": method, "params": params}))

        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await beside.gone.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave)
            answer = await self._ask(send)
            tasks.cancel_scope.cancel()
        result = answer.get("result") if answer is not None else None
        return result if isinstance(result, Mapping) else None

    # The answer

    async def answer(self, work: Awaitable[Reply], *, otherwise: Callable[[], Reply] | None = None) -> None:
        """Answer with what `work` comes to, which may send messages ahead of it; if it is cancelled, otherwise."""
        leaving = self._post.leaving
        self._began = asyncio.get_running_loop().time()
        if leaving is None:
            self.begin()
        else:
            leaving.add(self.begin)
            self._company.watch(self, self._began)
        try:
            with self.scope:
                self._answers.append(await work)
            if not self._answers and otherwise is not None:
                self._answers.append(otherwise())
            if self._beside is not None:
                self._beside.outbox.close()
                await self._beside.over.wait()
            elif self._answers:
                await self._post.reply(self._answers[0])
        finally:
            if leaving is not None:
                self._company.leave(self)
                leaving.discard(self.begin)
            if self._beside is not None:
                self._beside.scope.cancel()
        if self._beside is not None and self._beside.fault is not None:
            raise self._beside.fault

    def begin(self) -> Beside:
        """From now on something may go out ahead of the answer, and a client that leaves is noticed."""
        if self._beside is None:
            self._beside = Beside()
            self._company.start(self._accompany, self._beside)
        return self._beside

    async def _accompany(self, beside: Beside) -> None:
        try:
            with beside.scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._watch, beside)
                    await self._send(beside)
                    tasks.cancel_scope.cancel()
        except Exception as fault:  # noqa: BLE001  raised where the request is: here it would end all others
            beside.fault = fault
            self.scope.cancel()
        finally:
            beside.over.set()

    async def _send(self, beside: Beside) -> None:
        send = self._post.send
        waited = asyncio.get_running_loop().time() - self._began
        first = await beside.outbox.take(max(self._patience - waited, 0.0))
        if first is not None:
            await send({"type": "http.response.start", "status": 200, "headers": [*STREAM, *self._headers()]})
            await _stream(send, beside.outbox, first, patience=self._patience, last=self._answers)
        elif self._answers:
            await self._post.reply(self._answers[0])

    async def _watch(self, beside: Beside) -> None:
        while (await self._post.receive())["type"] != "http.disconnect":
            pass
        beside.gone.set()
        if self._ends_with_the_client:
            self.scope.cancel()


async def _stream(
    send: Send, outbox: Outbox, first: Sequence[bytes], *, patience: float, last: Sequence[Reply]
) -> None:
    events: Sequence[bytes] | None = first
    while events is not None:
        await send({"type": "http.response.body", "body": b"".join(events) or PING, "more_body": True})
        events = await outbox.take(patience)
    end = event(last[0].message) if last and last[0].message is not None else b""
    await send({"type": "http.response.body", "body": end})


async def stream(send: Send, receive: Receive, outbox: Outbox, *, patience: float, headers: Headers) -> None:
    """Send what comes into the outbox until it is closed or the client leaves."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await send({"type": "http.response.start", "status": 200, "headers": [*STREAM, *headers]})
        # The first byte makes proxies and clients believe in the stream.
        await _stream(send, outbox, (PING,), patience=patience, last=())
        tasks.cancel_scope.cancel()
