"""Stands under the SDK's streamable HTTP and keeps each failure to the one call that it belongs to.

The SDK runs all requests of a server in one task group: an exception out of one ends all the others, and a
body that it cannot parse becomes a traceback in the log. So nothing is ever raised from here. A request that
failed is answered with a JSON-RPC error (`http_failure.py` has its shape), and what a server says is checked
before it is handed on (`http_answers.py`).
"""

import json
from collections import Counter
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.abc
import httpx2
from loguru import logger

from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.http_answers import CheckedEvents, InFlight, Invalid, checked_body, encoded, invalid_frame
from squidbot.adapters.mcp.http_failure import RequestId, lost_frame, refused_frame
from squidbot.adapters.mcp.http_plain import media_type, read_body, read_rest
from squidbot.adapters.mcp.http_unasked import Unasked
from squidbot.adapters.mcp.network import Refused, describe, stays_the_same, what_to_try, where
from squidbot.adapters.mcp.shelf import Shelf
from squidbot.core.domain.errors import MCPConnectionError

_COURTESY = 5.0
"""Seconds for a message that has no answer."""
_HEAD_START = 0.5
"""Seconds that the word of our being ready has before what it is the beginning of; the server may have taken it long since."""
_MOST_BESIDE = 64
"""How many messages without an answer may be under way at once."""
_FAREWELL = 2.0
_LONGEST_ID = 4_096
_MOST_RESUMED = 60
"""How often one event's stream is taken up again: the SDK itself would do so for ever."""
_asked: ContextVar[RequestId] = ContextVar("asked")
"""The request that a task of the SDK's is for: it takes up the stream again itself, and would take any answer for its own."""


class HTTPGuard(httpx2.AsyncBaseTransport):
    """Wraps a transport; answers every request, whatever became of it."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        *,
        server: str,
        bounds: Bounds,
        timeout: float,
        shelf: Shelf,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self._inner = inner
        self._tasks = tasks
        self._bounds = bounds
        self._timeout = timeout
        self._shelf = shelf
        self._in_flight: InFlight = {}
        self._unasked = Unasked(server=server, bounds=bounds)
        self._resumed: Counter[str] = Counter()
        self._beside = 0

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Never raises anything but cancellation."""
        if request.method == "DELETE":
            return await self._farewell(request)
        if request.method == "GET" and "text/event-stream" in request.headers.get("accept", ""):
            return await self._listen(request)
        message = _message(request)
        if message is None:
            return await self._aside(request)
        request_id = message.get("id")
        if "method" not in message or not isinstance(request_id, int | str):
            return await self._tell(request, message)
        self._unasked.listed(message["method"])
        return await self._call(request, request_id)

    # A request, and its answer

    async def _call(self, request: httpx2.Request, request_id: RequestId) -> httpx2.Response:
        scope = self._in_flight[request_id] = anyio.CancelScope()
        _asked.set(request_id)
        try:
            with scope:
                return await self._answer(request, request_id)
        except Invalid as bad:
            return _failed(invalid_frame(request_id, str(bad)))
        except MCPConnectionError as error:
            words = f"{error}. {error.hint or ''}".strip()
            return _failed(lost_frame(request_id, words, status=error.status, permanent=error.permanent))
        except Exception as error:  # noqa: BLE001 - raised into the SDK it would end every neighbour
            unreachable = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            hint = what_to_try(error) if unreachable else ""
            cause = describe(error, where(request.url))
            lasting = stays_the_same(error)
            return _failed(lost_frame(request_id, cause, unreachable=unreachable, hint=hint, permanent=lasting))
        finally:
            if self._in_flight.get(request_id) is scope:
                del self._in_flight[request_id]
        return _failed(lost_frame(request_id, "nobody waits for the answer any more"))

    async def _answer(self, request: httpx2.Request, request_id: RequestId) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        status, kind = response.status_code, media_type(response)
        if not _can_be_sent_back(response.headers.get("mcp-session-id", "")):
            await response.aclose()
            raise Invalid("it names the session by what no header can carry")
        if status >= 300:
            frame = refused_frame(
                request_id,
                status,
                headers=response.headers,
                body=await read_rest(response),
                bounds=self._bounds,
                in_session="mcp-session-id" in request.headers,
            )
            return _failed(frame, status=max(status, 400), headers=response.headers)
        if status != 202 and kind == "text/event-stream":
            return self._stream(request, response, request_id)
        if status == 202 or kind != "application/json":
            await response.aclose()
            raise Invalid("the request was accepted without an answer" if status == 202 else _not_json(kind))
        try:
            message = await checked_body(await read_body(response, self._bounds.bytes), request_id, self._bounds)
        except Refused as large:
            raise Invalid(str(large)) from None
        return _response(200, response.headers, encoded(self._shelf.put(request_id, message)))

    def _stream(
        self,
        request: httpx2.Request,
        response: httpx2.Response,
        request_id: RequestId | None,
        *,
        resumed: bool = False,
    ) -> httpx2.Response:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        events = CheckedEvents(
            response.stream,
            place=where(request.url),
            bounds=self._bounds,
            request_id=request_id,
            in_flight=self._in_flight,
            unasked=self._unasked,
            shelf=self._shelf,
            resumed=resumed,
        )
        return httpx2.Response(200, headers=response.headers, stream=events, extensions=response.extensions)

    # Everything else

    async def _tell(self, request: httpx2.Request, message: dict[str, Any]) -> httpx2.Response:
        """Send what has no answer, beside the calls: the SDK's writer would wait for it, with all that is behind it."""
        if "method" not in message:
            self._unasked.answered(message.get("id"))
        if self._beside >= _MOST_BESIDE:
            self._unasked.odd(
                "untold", "does not take what it is told; {} messages wait, the rest is dropped", _MOST_BESIDE
            )
            return httpx2.Response(202)
        taken = anyio.Event()
        self._beside += 1
        self._tasks.start_soon(self._tell_beside, request, message, taken)
        if message.get("method") == "notifications/initialized":
            with anyio.move_on_after(_HEAD_START):
                await taken.wait()
        return httpx2.Response(202)

    async def _tell_beside(self, request: httpx2.Request, message: dict[str, Any], taken: anyio.Event) -> None:
        try:
            await self._bounded(request, min(self._timeout, _COURTESY))
        finally:
            self._beside -= 1
            taken.set()
        if message.get("method") == "notifications/cancelled":
            self._hang_up(message.get("params"))

    def _hang_up(self, params: Any) -> None:
        """The server was told that nobody waits any more, or took no notice: end what it was asked."""
        scope = self._in_flight.get(params.get("requestId", "")) if isinstance(params, dict) else None
        if scope is not None:
            scope.cancel()

    async def _aside(self, request: httpx2.Request) -> httpx2.Response:
        """A sign-in's own request: its answer is small and comes soon."""
        return await self._bounded(request, self._timeout)

    async def _farewell(self, request: httpx2.Request) -> httpx2.Response:
        await self._bounded(request, _FAREWELL)
        return httpx2.Response(204)

    async def _bounded(self, request: httpx2.Request, seconds: float) -> httpx2.Response:
        cause = f"no answer from {where(request.url)} within {seconds:g} s"
        with anyio.move_on_after(seconds):
            try:
                response = await self._inner.handle_async_request(request)
                return _response(response.status_code, response.headers, await read_rest(response))
            except Exception as error:  # noqa: BLE001 - raised into the SDK it would end every neighbour
                cause = describe(error, where(request.url))
        logger.debug("{} {} failed: {}", request.method, where(request.url), cause)
        return httpx2.Response(502, text=cause)

    async def _listen(self, request: httpx2.Request) -> httpx2.Response:
        """The stream of what a server says unasked, and of answers that are taken up again."""
        resumed = request.headers.get("last-event-id")
        if resumed is not None:
            self._resumed = Counter({resumed: self._resumed[resumed] + 1})
            if self._resumed[resumed] > _MOST_RESUMED:
                return httpx2.Response(410)
        try:
            response = await self._inner.handle_async_request(request)
        except Exception as error:  # noqa: BLE001 - raised into the SDK it would end every neighbour
            return httpx2.Response(502, text=describe(error, where(request.url)))
        if response.status_code < 300 and media_type(response) == "text/event-stream":
            is_resumed = resumed is not None
            return self._stream(request, response, _asked.get(None) if is_resumed else None, resumed=is_resumed)
        await response.aclose()
        return _response(max(response.status_code, 400), response.headers, b"")


def _message(request: httpx2.Request) -> dict[str, Any] | None:
    """The JSON-RPC message that a request carries, if it carries one."""
    if request.method != "POST" or not request.headers.get("content-type", "").startswith("application/json"):
        return None
    message = json.loads(request.content)
    return message if isinstance(message, dict) and "jsonrpc" in message else None


def _can_be_sent_back(session_id: str) -> bool:
    """Whether a session's id may go into the headers of what follows; the SDK would fail there, with all its calls."""
    return len(session_id) <= _LONGEST_ID and session_id.isascii() and session_id.isprintable()


def _not_json(kind: str) -> str:
    return f"it is {kind[:80]!r} instead of JSON; is this the url of an MCP server?" if kind else "it is empty"


def _response(status: int, headers: httpx2.Headers, body: bytes) -> httpx2.Response:
    # As they came: not all of them can be written anew.
    kept = [
        (name, value) for name, value in headers.raw if name.lower() not in (b"content-length", b"transfer-encoding")
    ]
    return httpx2.Response(status, headers=kept, content=body)


def _failed(frame: bytes, *, status: int = 502, headers: httpx2.Headers | None = None) -> httpx2.Response:
    """An answer that the SDK turns into the error in `frame`; status and headers stay, for a sign-in to read."""
    response = _response(status, headers or httpx2.Headers(), frame)
    response.headers["content-type"] = "application/json"
    return response
