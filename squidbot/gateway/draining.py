"""Knows which requests are under way, so that a gateway that ends can let them end first."""

import json

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from squidbot.gateway.walls import passed

_ALWAYS = frozenset({"/healthz", "/readyz", "/metrics"})
"""Those who watch hear of the end, they are not turned away."""
SHUTTING_DOWN = "the gateway is shutting down; try again in a moment"
_RETRY_AFTER = b"2"
_LISTENING = (b"mcp-method", b"subscriptions/listen")


class Draining:
    """The outermost layer: calls are waited for, streams that never end by themselves are ended."""

    def __init__(self, app: ASGIApp) -> None:
        self.closing = False
        self._app = app
        self._calls: set[anyio.CancelScope] = set()
        self._streams: set[anyio.CancelScope] = set()
        self._fewer = anyio.Event()

    @property
    def calls(self) -> int:
        """Requests that somebody waits for."""
        return len(self._calls)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self.closing and scope["path"] not in _ALWAYS:
            await _refuse(send)
        else:
            await self._serve(scope, receive, send)

    async def finish(self, within: float) -> int:
        """Take nothing new, end the streams, wait for the calls; how many were cut off."""
        self.closing = True
        for stream in tuple(self._streams):
            stream.cancel()
        with anyio.move_on_after(within):
            while self._calls:
                self._fewer = anyio.Event()
                await self._fewer.wait()
        return self.cut_off()

    def cut_off(self) -> int:
        """Wait no longer; how many that concerns."""
        left = len(self._calls)
        for call in tuple(self._calls):
            call.cancel()
        return left

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened = ended = False

        async def watched(message: Message) -> None:
            nonlocal opened, ended
            if message["type"] == "http.response.start":
                opened = True
                if _is_endless(scope, message):
                    self._becomes_stream(cut)
            elif not message.get("more_body", False):
                ended = True
            await send(message)

        passed(scope, self)
        with anyio.CancelScope() as cut:
            self._calls.add(cut)
            try:
                await self._app(scope, receive, watched)
            finally:
                self._streams.discard(cut)
                self._is_no_call(cut)
        if cut.cancelled_caught and not ended:
            # An end that the client can tell from a broken connection.
            await (send({"type": "http.response.body", "body": b""}) if opened else _refuse(send))

    def still(self) -> bool:
        """Satisfies `Wall`: everybody is let through until it is the end."""
        return not self.closing

    def enter(self, work: anyio.CancelScope) -> None:
        self._calls.add(work)

    def leave(self, work: anyio.CancelScope) -> None:
        self._is_no_call(work)

    def _becomes_stream(self, cut: anyio.CancelScope) -> None:
        self._streams.add(cut)
        self._is_no_call(cut)
        if self.closing:
            cut.cancel()

    def _is_no_call(self, cut: anyio.CancelScope) -> None:
        self._calls.discard(cut)
        self._fewer.set()


def _is_endless(scope: Scope, answer: Message) -> bool:
    """Whether the answer is a stream that goes on until somebody hangs up."""
    kind = next((value for name, value in answer["headers"] if name.lower() == b"content-type"), b"")
    return kind.startswith(b"text/event-stream") and (scope["method"] == "GET" or _LISTENING in scope["headers"])


async def _refuse(send: Send) -> None:
    body = json.dumps({"error": {"code": "shutting_down", "message": SHUTTING_DOWN, "hint": None}}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", _RETRY_AFTER),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})
