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
_AROUND = len(": \r\n")
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


class _TooLarge(Exception):
    """A head that has more than it may: ends the parser's work on it."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    patience = PATIENCE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._in_head = True
        self._raw = self._head = 0
        self._is_deaf = False
        self._late: asyncio.TimerHandle | None = None
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        # Two counts: a line without end never comes to the parser's callbacks, and a head that came at once is over here.
        self._raw += len(data)
        super().data_received(data)
        if self._in_head and self._raw > MAX_HEAD and not self.transport.is_closing():
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self._expect()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + _AROUND)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._arrived()
        # What else came in the same read is the next head's, and too little to matter.
        self._in_head, self._raw = True, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Where the parser gave up."""
        if self._head > MAX_HEAD:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            raise _TooLarge

    def _refuse_head(self) -> None:
        words = b"The head of the request is too large."
        if self._is_idle():
            # Heard on for a moment, and forgotten: whoever is cut off while they still send never sees why.
            self._is_deaf = True
            self._say(431, words)
            self.loop.call_later(_LAST_CHANCE, self.transport.close)
        else:
            self._refuse(431, words)

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
            self._say(status, words)
        self.transport.close()

    def _say(self, status: int, words: bytes) -> None:
        length = str(len(words)).encode()
        head = b"content-type: text/plain\r\ncontent-length: " + length + b"\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head + words)


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
