"""Server-sent events: one stream from the server, and a POST for each message to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import httpx2

from squidbot.adapters.mcp.channel import Bounds, ChannelClosed, Frame, Oversize
from squidbot.adapters.mcp.events import Event, Events
from squidbot.adapters.mcp.http_client import PATIENCE, open_client
from squidbot.adapters.mcp.http_failure import RequestId, lost_frame, refused_frame
from squidbot.adapters.mcp.http_plain import media_type, read_rest, same_origin
from squidbot.adapters.mcp.network import describe, refused, unreachable, where
from squidbot.adapters.mcp.transport import Opening
from squidbot.adapters.mcp.turns import Turns
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError

_AT_ONCE = 64
"""Messages on their way at the same time, of those that are answered and of those that are not."""
_WAITING = 256
"""Frames that may wait to be taken before the stream is read no further."""
_COURTESY = 5.0
"""Seconds for a message that has no answer."""
_HEAD_START = 0.5
"""Seconds that those after it wait for it, to keep their order: a server may have taken it and not say so."""


@asynccontextmanager
async def open_sse(config: MCPServerConfig, opening: Opening) -> AsyncIterator["SSEChannel"]:
    """A channel to a server that has said where it takes messages. Raises MCPConnectionError."""
    try:
        async with (
            open_client(config, opening) as client,
            _open_stream(config, client, opening.bounds) as stream,
            anyio.create_task_group() as tasks,
        ):
            channel = SSEChannel(client, tasks, endpoint=await stream.endpoint(), bounds=opening.bounds)
            tasks.start_soon(channel.listen, stream, config.sse_read_timeout)
            try:
                yield channel
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The tasks of a channel raise nothing: what is in the group is what the user of the channel raised.
        raise group.exceptions[0] from None


@asynccontextmanager
async def _open_stream(
    config: MCPServerConfig, client: httpx2.AsyncClient, bounds: Bounds
) -> AsyncIterator["_EventStream"]:
    """The stream, once it has said where messages go. Raises MCPConnectionError."""
    place, timeout = where(config.url or ""), config.timeout or PATIENCE
    response: httpx2.Response | None = None
    try:
        try:
            with anyio.fail_after(timeout):
                request = client.build_request("GET", config.url or "", headers={"accept": "text/event-stream"})
                response = await client.send(request, stream=True)
                _check(response, server=config.name, place=place)
                stream = _EventStream(response, server=config.name, limit=bounds.bytes)
                await stream.endpoint()
        except MCPConnectionError:
            raise
        except TimeoutError:
            missing = "did not answer" if response is None else "did not say where it takes messages"
            raise MCPConnectionError(
                f"{place} {missing} within {timeout:g} s", server=config.name, hint="Is this the url of an SSE server?"
            ) from None
        except ChannelClosed as closed:
            raise MCPConnectionError(f"{place}: {closed}", server=config.name) from None
        except Exception as error:
            raise unreachable(error, server=config.name, place=place) from error
        yield stream
    finally:
        if response is not None:
            with anyio.move_on_after(1, shield=True):
                await response.aclose()


def _check(response: httpx2.Response, *, server: str, place: str) -> None:
    if not response.is_success:
        raise refused(response.status_code, server=server, place=place, headers=response.headers)
    kind = media_type(response)
    if kind != "text/event-stream":
        raise MCPConnectionError(
            f"{place} answered with {kind[:80]!r} instead of a stream of events",
            server=server,
            hint="Check the url and `transport`: this may be no MCP server, or one that speaks `http`.",
            status=response.status_code,
            permanent=True,
        )


class _EventStream:
    """The events of a response as they come."""

    def __init__(self, response: httpx2.Response, *, server: str, limit: int) -> None:
        self._server = server
        self._url = response.url
        self._chunks = response.aiter_raw()
        self._events = Events(limit)
        self._turns = Turns()
        self._ready: Sequence[Event | Oversize] = ()
        self._endpoint: httpx2.URL | None = None

    async def next(self) -> Sequence[Event | Oversize]:
        """At least one event, or none at the end. Raises ChannelClosed, and what the transport raises."""
        while not self._ready:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return ()
            self._ready = self._events.feed(chunk)
            await self._turns.pause()  # what is at hand already never waits for anything, and may have many lines
        ready, self._ready = self._ready, ()
        return ready

    async def endpoint(self) -> httpx2.URL:
        """Where the server takes messages, from the event that says so. Raises MCPConnectionError."""
        while self._endpoint is None:
            events = await self.next()
            if not events:
                raise ChannelClosed("it ended the stream before it said where it takes messages")
            for index, event in enumerate(events):
                if isinstance(event, Event) and event.name == "endpoint":
                    self._endpoint = self._target(event.data)
                    self._ready = events[index + 1 :]
                    break
        return self._endpoint

    def _target(self, data: bytes) -> httpx2.URL:
        """A server may choose the path, never the host: what is sent there carries our credentials."""
        place = where(self._url)
        try:
            url = self._url.join(data.decode("utf-8", "replace").strip())
            if url.scheme in ("http", "https") and same_origin(self._url, url):
                return url
            elsewhere = f"{url.scheme}://{where(url)}" if url.host else "what is no web address"
        except httpx2.InvalidURL:
            elsewhere = "what is no url"
        raise MCPConnectionError(
            f"{place} wants messages to be sent to {elsewhere}; that is refused",
            server=self._server,
            hint="A server may only take messages where it was asked; its own settings may be wrong.",
            permanent=True,
        )


class SSEChannel:
    """The stream's frames in, POSTs out, side by side."""

    def __init__(
        self, client: httpx2.AsyncClient, tasks: anyio.abc.TaskGroup, *, endpoint: httpx2.URL, bounds: Bounds
    ) -> None:
        self._client = client
        self._tasks = tasks
        self._endpoint = endpoint
        self._place = where(endpoint)
        self._bounds = bounds
        self._frames: list[Frame] = []
        self._size = 0
        self._news = anyio.Event()
        self._room = anyio.Event()
        self._end: ChannelClosed | None = None
        self._slots = {asked: anyio.Semaphore(_AT_ONCE) for asked in (True, False)}
        self._last_notification = anyio.Event()
        self._last_notification.set()
        self._in_flight: dict[RequestId, anyio.CancelScope] = {}

    # Inbound

    async def receive(self) -> Sequence[Frame]:
        while not self._frames:
            if self._end is not None:
                raise self._end
            self._news = anyio.Event()
            await self._news.wait()
        frames, self._frames, self._size = self._frames, [], 0
        self._room.set()
        return frames

    async def listen(self, stream: _EventStream, silence: float) -> None:
        """Take events until there are no more; `silence` is how long a server may say nothing."""
        reason = "the server ended the stream"
        try:
            while events := await stream.next():
                for event in events:
                    if isinstance(event, Oversize):
                        self._put(event)
                    elif event.name == "message" and event.data:
                        self._put(event.data)
                while self._size > self._bounds.bytes or len(self._frames) > _WAITING:
                    self._room = anyio.Event()
                    await self._room.wait()
        except ChannelClosed as closed:
            reason = str(closed)
        except httpx2.ReadTimeout:
            reason = f"nothing came from {self._place} for {silence:g} s"
        except Exception as error:  # noqa: BLE001 - whatever it was, the stream has ended, and waiting calls hear of it
            reason = describe(error, self._place)
        self._end = ChannelClosed(reason)
        self._news.set()

    def _put(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._size += len(frame) if isinstance(frame, bytes) else 0
        self._news.set()

    # Outbound

    async def send(self, frame: bytes, request_id: RequestId | None) -> None:
        if self._end is None:
            await self._slots[request_id is not None].acquire()
        if self._end is not None:
            raise self._end
        before, told = self._last_notification, None
        if request_id is None and b'"method"' in frame:  # an answer keeps nothing waiting
            told = self._last_notification = anyio.Event()
            asyncio.get_running_loop().call_later(_HEAD_START, told.set)
        self._tasks.start_soon(self._post, frame, request_id, before, told)

    async def _post(
        self, frame: bytes, request_id: RequestId | None, before: anyio.Event, told: anyio.Event | None
    ) -> None:
        """Deliver one message after the notifications before it; requests overtake one another."""
        try:
            await before.wait()
            if request_id is None:
                with anyio.move_on_after(_COURTESY):
                    await self._deliver(frame, 0)
                self._abandon(frame)
                return
            scope = self._in_flight[request_id] = anyio.CancelScope()
            with scope:
                failure = await self._deliver(frame, request_id)
                if failure is not None:
                    self._put(failure)
            if self._in_flight.get(request_id) is scope:
                del self._in_flight[request_id]
        finally:
            self._slots[request_id is not None].release()
            if told is not None:
                told.set()

    async def _deliver(self, frame: bytes, request_id: RequestId) -> bytes | None:
        """POST a message; the error frame that answers it if the server did not take it."""
        try:
            request = self._client.build_request(
                "POST", self._endpoint, content=frame, headers={"content-type": "application/json"}
            )
            response = await self._client.send(request, stream=True)
            body = await read_rest(response)
        except MCPConnectionError as error:
            return lost_frame(request_id, str(error), status=error.status)
        except Exception as error:  # noqa: BLE001 - one message's failure is one call's, never the stream's
            return lost_frame(request_id, describe(error, self._place))
        if response.is_success:
            return None
        return refused_frame(
            request_id, response.status_code, headers=response.headers, body=body, bounds=self._bounds, in_session=True
        )

    def _abandon(self, frame: bytes) -> None:
        """Hang up on a request that a notification has just cancelled: some servers answer a POST only at its end."""
        if b"notifications/cancelled" in frame:
            params = json.loads(frame).get("params") or {}
            scope = self._in_flight.get(params.get("requestId", ""))
            if scope is not None:
                scope.cancel()
