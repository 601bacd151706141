"""HTTP/1.1 from uvicorn, with what it leaves open: a request that never ends, and a head without bounds."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import anyio
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MAX_HEAD = 65_536
"""Bytes of a request's line and headers."""
PATIENCE = 30.0
"""Seconds for a whole request to arrive; whoever sends a byte now and then holds a connection no longer."""
_KEPT_ALIVE = 75
"""Seconds for an idle connection: longer than clients keep theirs, so that none meets one that is just closing."""
_LAST_WORDS = 2
"""Seconds for connections to close when all requests are over."""
_LAST_CHANCE = 0.5
"""Seconds in which a connection without a request is still listened to at the end."""
_MOST_CONNECTIONS = 4_000


QUIET: dict[str, Any] = {"log_config": None, "log_level": "error"}
"""Whoever sends no HTTP gets 400 and no line in the log: anybody could fill it so, before any token is asked for."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    patience = PATIENCE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._in_head = True
        self._head = 0
        self._late: asyncio.TimerHandle | None = None
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._refuse(431, b"The head of the request is too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head = True, 0
        self._expect()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._arrived()
        super().on_message_complete()

    def shutdown(self) -> None:
        """Told to end: who has sent nothing yet may be about to, and is answered that we end rather than cut off."""
        if self._is_idle():
            self.loop.call_later(_LAST_CHANCE, self._end)
        else:
            super().shutdown()

    def _end(self) -> None:
        if self._is_idle():
            self.transport.close()

    def _is_idle(self) -> bool:
        cycle: Any = self.cycle  # None before the first head has arrived
        return cycle is None or cycle.response_complete

    def _expect(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(self.patience, self._too_late)

    def _arrived(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._late = None
        if not self.transport.is_closing():
            self._refuse(408, b"The request did not arrive in time.")

    def _refuse(self, status: int, words: bytes) -> None:
        """Say why, unless an answer has begun, and hang up."""
        if self._is_idle() or not self.cycle.response_started:
            length = str(len(words)).encode()
            head = b"content-type: text/plain\r\ncontent-length: " + length + b"\r\nconnection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[status] + head + words)
        self.transport.close()


class HTTPServer(uvicorn.Server):
    """uvicorn on a socket that is bound already, without its hands on the program's signals."""

    def __init__(self, app: ASGIApp) -> None:
        # What uvicorn takes for a protocol class is checked by name only; types know just its own two.
        options: dict[str, Any] = {"http": BoundedProtocol, "ws": "none", "lifespan": "off", **QUIET}
        super().__init__(
            uvicorn.Config(
                app,
                **options,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEPT_ALIVE,
                timeout_graceful_shutdown=_LAST_WORDS,
                limit_concurrency=_MOST_CONNECTIONS,
            )
        )
        self.ready = anyio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()
