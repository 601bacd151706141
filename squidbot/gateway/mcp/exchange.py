"""One POST and its answer: the headers wait until it ends, or something else must go out first, or some time has passed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
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


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and the message that goes with it, if any."""

    status: int
    message: Mapping[str, Any] | None = None
    headers: Headers = ()


class PostLine:
    """Satisfies `Line`: what goes out on a POST's own stream, ahead of its answer."""

    def __init__(self, outbox: Outbox, ask: Ask | None = None) -> None:
        self._outbox = outbox
        self._ask = ask
        self.gone = anyio.Event()
        """Set when the client does not listen any more."""

    def notify(self, method: str, params: Mapping[str, Any] | None) -> bool:
        message = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        return self._outbox.put(event(message))

    async def settled(self) -> None:
        """What was told is in the same outbox as the answer will be."""

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if self._ask is None or self.gone.is_set():
            return None
        answer: Mapping[str, Any] | None = None

        def send(name: str) -> bool:
            return self._outbox.put(event({"jsonrpc": "2.0", "id": name, "method": method, "params": params}))

        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await self.gone.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave)
            answer = await self._ask(send)
            tasks.cancel_scope.cancel()
        result = answer.get("result") if answer is not None else None
        return result if isinstance(result, Mapping) else None


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


async def exchange(
    work: Callable[[PostLine], Awaitable[Reply]],
    *,
    send: Send,
    receive: Receive,
    patience: float,
    ask: Ask | None = None,
    ends_with_the_client: bool,
    headers: Headers = (),
) -> None:
    """Answer a POST with what `work` comes to, which may send messages ahead of it."""
    outbox = Outbox()
    line = PostLine(outbox, ask)
    answers: list[Reply] = []

    async def run() -> None:
        answers.append(await work(line))
        outbox.close()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        line.gone.set()
        if ends_with_the_client:
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        tasks.start_soon(watch)
        first = await outbox.take(patience)
        if first is None:
            await reply(send, answers[0])
        else:
            await send({"type": "http.response.start", "status": 200, "headers": [*STREAM, *headers]})
            await _stream(send, outbox, first, patience=patience, last=answers)
        tasks.cancel_scope.cancel()


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
