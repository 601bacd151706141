"""WebSocket: one connection that all calls share, a text frame for each message."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    InvalidURI,
)
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from squidbot.adapters.mcp.channel import MEGABYTE, Bounds, ChannelClosed, Frame, Oversize
from squidbot.adapters.mcp.network import refused, tls, unreachable, unsendable, where
from squidbot.adapters.mcp.transport import Opening
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError

_PATIENCE = 30.0
"""Seconds for connecting, where the settings do not say."""
_PING_EVERY = 20.0
_PONG_WITHIN = 60.0
"""Seconds: a server that is busy with one long call may not get round to a pong."""
_FAREWELL = 2.0
_HANGING_UP = 1.0
_LEAVING = 0.3
"""Seconds that a peer has to hang up once it has closed the connection."""
_AT_ONCE = 8_192
"""Bytes that are taken off the socket at a time: all the frames in them are read before anybody else has a turn."""
_MARGIN = 4
"""A message up to so many times too large is thrown away alone; a larger one costs the connection."""
_MOST_UNREAD = 32 * MEGABYTE
"""Bytes that may wait for a peer who goes on talking and does not read."""
_EDGE = 4096
_LONGEST_REASON = 200


@asynccontextmanager
async def open_websocket(config: MCPServerConfig, opening: Opening) -> AsyncIterator["WebSocketChannel"]:
    """A channel over an open connection. Raises MCPConnectionError."""
    place = where(config.url or "")
    connection = await _connect(config, opening.bounds, place)
    try:
        yield WebSocketChannel(connection, place=place, bounds=opening.bounds)
        with anyio.move_on_after(_FAREWELL):
            await connection.close()
    finally:
        # Under cancellation there was no farewell, and a peer that floods us never takes part in one.
        connection.transport.abort()
        with anyio.move_on_after(_HANGING_UP, shield=True):
            await connection.wait_closed()


class _ConnectHere(connect):
    """Connects to where it was told and nowhere else: a redirect would take our credentials along."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class _InTurns(ClientConnection):
    """Takes small bites, from the first on: asyncio's own of 256 KB may hold 100,000 pings."""

    _is_leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        with suppress(AttributeError):  # another loop's transports have sizes of their own
            transport.max_size = _AT_ONCE  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.protocol.close_rcvd is not None and not self._is_leaving:
            # It has said goodbye, and was answered: not all who do so hang up, and nobody is to wait for them.
            self._is_leaving = True
            asyncio.get_running_loop().call_later(_LEAVING, self.transport.abort)
        if self.transport.get_write_buffer_size() > _MOST_UNREAD:
            self.transport.abort()  # it has us answer its pings, and reads no answer


async def _connect(config: MCPServerConfig, bounds: Bounds, place: str) -> ClientConnection:
    timeout = config.timeout or _PATIENCE
    if not all(f"{name}{value}".isascii() for name, value in config.headers.items()):
        raise unsendable(config.name, place)
    try:
        return await _ConnectHere(
            config.url or "",
            create_connection=_InTurns,
            subprotocols=[Subprotocol("mcp")],
            additional_headers=config.headers,
            proxy=None,
            ssl=tls() if (config.url or "").lower().startswith("wss:") else None,
            open_timeout=timeout,
            ping_interval=_PING_EVERY,
            ping_timeout=_PONG_WITHIN,
            close_timeout=_FAREWELL,
            max_size=_MARGIN * bounds.bytes,
            max_queue=4,
        )
    except InvalidStatus as answer:
        status = answer.response.status_code
        raise refused(status, server=config.name, place=place, headers=answer.response.headers) from None
    except InvalidURI:
        raise MCPConnectionError("the url is no valid url", server=config.name, permanent=True) from None
    except TimeoutError:
        raise MCPConnectionError(f"{place} did not answer within {timeout:g} s", server=config.name) from None
    except InvalidMessage as error:
        if isinstance(error.__cause__, OSError):
            raise unreachable(error, server=config.name, place=place) from error
        raise _no_websocket(config.name, place) from error
    except (InvalidHandshake, EOFError) as error:
        raise _no_websocket(config.name, place) from error
    except OSError as error:
        raise unreachable(error, server=config.name, place=place) from error


def _no_websocket(server: str, place: str) -> MCPConnectionError:
    return MCPConnectionError(
        f"{place} does not speak WebSocket, or broke off while it was asked to",
        server=server,
        hint="Check the url: its port and path may belong to another service.",
    )


class WebSocketChannel:
    """Messages of one connection as frames."""

    def __init__(self, connection: ClientConnection, *, place: str, bounds: Bounds) -> None:
        self._connection = connection
        self._place = place
        self._bounds = bounds
        self._writing = anyio.Lock()

    async def receive(self) -> Sequence[Frame]:
        try:
            # Undecoded: bad UTF-8 is then one call's trouble and not the connection's, and binary is as good as text.
            message = await self._connection.recv(decode=False)
        except ConnectionClosed as closed:
            raise self._ended(closed) from None
        if len(message) > self._bounds.bytes:
            return [Oversize(message[:_EDGE], message[-_EDGE:], self._bounds.bytes)]
        return [message]

    async def send(self, frame: bytes, request_id: int | str | None) -> None:
        del request_id
        try:
            async with self._writing:
                # For a peer who does not read one message waits to be sent, not those of every call.
                with suppress(OSError):
                    await self._connection.drain()
                await self._connection.send(frame, text=True)
        except ConnectionClosed as closed:
            raise self._ended(closed) from None

    def _ended(self, closed: ConnectionClosed) -> ChannelClosed:
        """Why the connection ended: what the peer said counts more than what we did about it."""
        ours, theirs = closed.sent, closed.rcvd
        if ours is not None and (theirs is None or not closed.rcvd_then_sent):
            match ours.code:
                case CloseCode.MESSAGE_TOO_BIG:
                    limit = _MARGIN * self._bounds.bytes / MEGABYTE
                    return ChannelClosed(f"{self._place} sent a message larger than {limit:g} MB")
                case CloseCode.INTERNAL_ERROR:
                    return ChannelClosed(f"{self._place} no longer answers")
                case CloseCode.PROTOCOL_ERROR | CloseCode.INVALID_DATA:
                    return ChannelClosed(f"{self._place} broke the rules of WebSocket: {ours.reason[:_LONGEST_REASON]}")
        if theirs is None:
            return ChannelClosed(f"the connection to {self._place} broke off")
        said = f": {theirs.reason[:_LONGEST_REASON]}" if theirs.reason else ""
        return ChannelClosed(f"{self._place} closed the connection with code {theirs.code}{said}")
