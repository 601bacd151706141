"""HTTP/1.1 from uvicorn, with what it leaves open: a request that never ends, and a head without bounds."""

import asyncio
import contextlib
import logging
import select
import socket
from collections.abc import Callable, Coroutine, Iterator
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote

import anyio
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from squidbot.gateway.guard import STANDING_HEADERS
from squidbot.gateway.walls import LEARN, LEAVING, WALLS, ShortWay

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
_MOMENT = 0.02
_MOST_CONNECTIONS = 4_000
_LINGER = 5.0
"""Seconds for which a request is still read that was answered before its end, where the connection is to be closed."""
_MOST_DROPPED = 64 * 1024 * 1024
"""Bytes of such requests that one connection may send."""
_log = logging.getLogger("squidbot.gateway")
_SHORT = 65_536
"""Bytes of a body that may come the short way: it is looked at in one piece."""


QUIET: dict[str, Any] = {"log_config": None, "log_level": "error"}
"""Whoever sends no HTTP gets 400 and no line in the log: anybody could fill it so, before any token is asked for."""


class _TooLarge(Exception):
    """A head that has more than it may: ends the parser's work on it."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    patience = PATIENCE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport: Any = _Lingering(transport, self._linger)
        self._in_head = True
        self._dropped = 0
        self._raw = self._head = self._read = self._since = 0
        self._is_deaf = False
        self.leaving: set[Callable[[], object]] = set()
        self._known: _Known | None = None
        self._late: asyncio.TimerHandle | None = None
        self._due: float | None = None
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)
        for tell in tuple(self.leaving):
            tell()

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        # Two counts: a line without end never comes to the parser's callbacks, and a head that came at once is over here.
        self._read = len(data)
        self._raw += self._read
        self._since += self._read
        super().data_received(data)
        if self._in_head and self._raw > MAX_HEAD and not self.transport.is_closing():
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self._since = self._read
        self._expect()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._since > MAX_HEAD:  # else it cannot be too large, with whatever came beside it
            self._head = len(self.url) + sum(len(name) + len(value) + _AROUND for name, value in self.headers)
            if self._head > MAX_HEAD:
                raise _TooLarge
        may_be_short = self._may_be_short()
        if may_be_short and self._known is not None and self._known.is_for(self.url, self.headers):
            cycle: Any = ShortCycle(self, self._known.way, self.scope, self.url)
            self.cycle = cycle
            return
        scope: Any = self.scope
        scope[LEAVING] = self.leaving
        if may_be_short:
            scope[WALLS], scope[LEARN] = [], partial(self.learn, self.url, self.headers)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        cycle: Any = self.cycle
        if cycle.response_complete:
            self._drop(len(body))
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        self._arrived()
        # What else came in the same read is the next head's, and too little to matter.
        self._in_head, self._raw = True, 0
        super().on_message_complete()
        if self.transport.lingers:
            self.transport.close_now()
            return
        cycle: object = self.cycle
        if isinstance(cycle, ShortCycle):
            self._start(cycle.run())

    def _may_be_short(self) -> bool:
        """Whether a request is one of those that come again and again: a POST of some size, alone on its connection."""
        return (
            self.parser.get_method() == b"POST"
            and self.parser.get_http_version() == "1.1"
            and self.parser.should_keep_alive()
            and not self.expect_100_continue
            and self._is_idle()
            and len(self.connections) < _MOST_CONNECTIONS
            and len(self.tasks) < _MOST_CONNECTIONS
        )

    def learn(self, url: bytes, headers: list[tuple[bytes, bytes]], way: ShortWay) -> None:
        """From now on, requests with this head go that way."""
        sizes = [place for place, (name, _) in enumerate(headers) if name == b"content-length"]
        if len(sizes) == 1:
            self._known = _Known(url, headers, sizes[0], way)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def send_400_response(self, msg: str) -> None:
        """Where the parser gave up."""
        if self._head > MAX_HEAD:
            self._refuse_head()
        elif self._is_answered():
            self.transport.close_now()
        else:
            super().send_400_response(msg)

    def _refuse_head(self) -> None:
        words = b"The head of the request is too large."
        if self._is_idle():
            # Heard on for a moment, and forgotten: whoever is cut off while they still send never sees why.
            self._is_deaf = True
            self.say(431, words)
            self.loop.call_later(_LAST_CHANCE, self.transport.close_now)
        else:
            self._refuse(431, words)

    def shutdown(self) -> None:
        """Told to end: who has sent nothing yet may be about to, and is answered that we end rather than cut off."""
        if self._is_idle():
            self.loop.call_later(_LAST_CHANCE, self._end)
        else:
            super().shutdown()

    def _end(self) -> None:
        if self.transport.is_closing() or not self._is_idle():
            return
        if self._in_head and _can_be_read(self.transport.get_extra_info("socket").fileno()):
            # A request that has come and was not looked at yet: closed now, it would be reset.
            self.loop.call_later(_MOMENT, self._end)
        else:
            self.transport.close()

    def _is_idle(self) -> bool:
        cycle: Any = self.cycle  # None before the first head has arrived
        return cycle is None or cycle.response_complete

    def _expect(self) -> None:
        self._due = self.loop.time() + self.patience
        if self._late is None:
            self._late = self.loop.call_at(self._due, self._is_it_late)

    def _arrived(self) -> None:
        self._due = None

    def _is_it_late(self) -> None:
        """One timer for all requests of a connection: to set and cancel one for each takes longer than to look again."""
        self._late = None
        if self._due is None or self.transport.is_closing():
            return
        if self._due > self.loop.time():
            self._late = self.loop.call_at(self._due, self._is_it_late)
        elif self._is_answered():
            self.transport.close_now()
        else:
            self._refuse(408, b"The request did not arrive in time.")

    def _refuse(self, status: int, words: bytes) -> None:
        """Say why, unless an answer has begun, and hang up."""
        if self._is_idle() or not self.cycle.response_started:
            self.say(status, words)
        self.transport.close_now()

    def _is_answered(self) -> bool:
        """Whether somebody has their answer and is still sending what was to be answered."""
        cycle: Any = self.cycle
        return not self._in_head and cycle is not None and cycle.response_complete

    def _linger(self) -> bool:
        """Whether to read on for a while instead of hanging up."""
        if not self._is_answered():
            return False
        self.flow.resume_reading()
        self.loop.call_later(_LINGER, self.transport.close_now)
        return True

    def _drop(self, size: int) -> None:
        """Forget what nobody wants to know any more; but not without end."""
        self._dropped += size
        if self._dropped > _MOST_DROPPED:
            self.transport.close_now()

    def say(self, status: int, words: bytes) -> None:
        """Answer in words, without any application."""
        length = str(len(words)).encode()
        head = b"content-type: text/plain\r\ncontent-length: " + length + b"\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head + words)


class _Lingering:
    """A connection that is not closed under the hands of somebody who still sends: they would never see their answer."""

    __slots__ = ("_linger", "_transport", "lingers", "write")

    def __init__(self, transport: asyncio.Transport, linger: Callable[[], bool]) -> None:
        self._transport = transport
        self._linger = linger
        self.lingers = False
        self.write = transport.write

    def close(self) -> None:
        """Hang up, as soon as that hides nothing."""
        if self.lingers or self._transport.is_closing():
            return
        self.lingers = self._linger()
        if not self.lingers:
            self._transport.close()

    def close_now(self) -> None:
        """Hang up."""
        self._transport.close()

    def is_closing(self) -> bool:
        return self.lingers or self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Known:
    """A head that came all the way a moment ago, and the short way for others like it, of whatever length their bodies are."""

    __slots__ = ("_after", "_before", "_size", "_url", "way")

    def __init__(self, url: bytes, headers: list[tuple[bytes, bytes]], size: int, way: ShortWay) -> None:
        self._url = url
        self._size = size
        self._before, self._after = headers[:size], headers[size + 1 :]
        self.way = way

    def is_for(self, url: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
        at = self._size
        if len(headers) <= at:
            return False
        name, size = headers[at]
        return (
            name == b"content-length"
            and len(size) <= len(str(_SHORT))
            and int(size) <= _SHORT
            and headers[:at] == self._before
            and headers[at + 1 :] == self._after
            and url == self._url
        )


class ShortCycle:
    """A request that comes the short way: in the place of uvicorn's own cycle, and turned into one where that is needed."""

    def __init__(self, protocol: BoundedProtocol, way: ShortWay, scope: Any, url: bytes) -> None:
        self._protocol = protocol
        self._way = way
        self._scope = scope
        self._url = url
        self._long: RequestResponseCycle | None = None
        self.leaving = protocol.leaving
        # What the server looks at while this is its cycle.
        self.body = bytearray()
        self.more_body = True
        self.keep_alive = True
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self.message_event = self

    def set(self) -> None:
        """Somebody who waits would be told here; nobody does."""

    async def run(self) -> None:
        """Answer the request, one way or the other."""
        body = bytes(self.body)
        try:
            if not await self._way.serve(body, self):
                await self._turned(body).run_asgi(self._protocol.app)
        except Exception as fault:  # noqa: BLE001  the last one who can answer
            _log.error("a request failed inside squidbot", exc_info=fault)
            if not self.response_started and self._long is None:
                self._protocol.say(500, b"Internal error")
            self._protocol.transport.close()

    async def finish(self, body: bytes) -> None:
        """Answer with JSON."""
        protocol = self._protocol
        if self._long is not None:
            length = (b"content-length", str(len(body)).encode())
            await self.send({"type": "http.response.start", "status": 200, "headers": [_JSON, length]})
            await self.send({"type": "http.response.body", "body": body})
            return
        if protocol.flow.write_paused and not self.disconnected:
            await protocol.flow.drain()
        if self.disconnected:
            return
        head = _head_of(protocol.server_state)
        end = b"\r\n\r\n" if self.keep_alive else b"\r\nconnection: close\r\n\r\n"
        protocol.transport.write(b"%b%d%b%b" % (head, len(body), end, body))
        self.response_started = self.response_complete = True
        if not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()

    async def send(self, message: Any) -> None:
        """Send as an application does, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            standing = [pair for pair in STANDING_HEADERS if pair[0] not in given]
            message = {**message, "headers": [*message["headers"], *standing]}
        await self._turned(b"").send(message)

    async def receive(self) -> Any:
        """Hear that the client hangs up."""
        return await self._turned(b"").receive()

    def _turned(self, body: bytes) -> RequestResponseCycle:
        """The server's own cycle for this request, whose body is here or has been dealt with."""
        if self._long is None:
            protocol, scope = self._protocol, self._scope
            raw_path, _, query = self._url.partition(b"?")  # it came from a parser, the first time
            path = raw_path.decode("ascii")
            scope |= {
                "method": "POST",
                "path": unquote(path) if "%" in path else path,
                "raw_path": raw_path,
                "query_string": query,
                LEAVING: self.leaving,
                WALLS: [],
                LEARN: partial(protocol.learn, self._url, scope["headers"]),
            }
            self._long = RequestResponseCycle(
                scope=scope,
                transport=protocol.transport,
                flow=protocol.flow,
                logger=protocol.logger,
                access_logger=protocol.access_logger,
                access_log=protocol.access_log,
                default_headers=protocol.server_state.default_headers,
                message_event=asyncio.Event(),
                expect_100_continue=False,
                keep_alive=self.keep_alive,
                on_response=self._ended,
            )
            self._long.body, self._long.more_body = bytearray(body), False
            self._long.disconnected = self.disconnected
            if body:
                self._long.message_event.set()
            current: object = protocol.cycle
            if current is self:
                protocol.cycle = self._long
        return self._long

    def _ended(self) -> None:
        self.response_started = self.response_complete = True
        self._protocol.on_response_complete()


_JSON = (b"content-type", b"application/json")
_STANDING = b"".join(name + b": " + value + b"\r\n" for name, value in (_JSON, *STANDING_HEADERS))


@lru_cache(maxsize=1)
def _written_head(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    lines = (name + b": " + value + b"\r\n" for name, value in headers)
    return b"".join((STATUS_LINE[200], *lines, _STANDING, b"content-length: "))


def _head_of(state: uvicorn.server.ServerState) -> bytes:
    """How every answer begins, up to its length; it changes once a second, with the date."""
    return _written_head(tuple(state.default_headers))


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

    def give_up(self) -> None:
        """Wait for nobody any more, once it is told to end."""
        self.force_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take those who have connected and were not let in yet, then nobody any more: they would be reset."""
        waiting = [connection for listener in sockets or () for connection in _waiting(listener)]
        for server in self.servers:
            server.close()
        for connection in waiting:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        kind: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = kind(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def _waiting(listener: socket.socket) -> Iterator[socket.socket]:
    """The connections that nobody has accepted yet."""
    with contextlib.suppress(OSError):  # there are no more
        while True:
            yield listener.accept()[0]


def _can_be_read(descriptor: int) -> bool:
    """Whether something has come on a connection, or its end."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
