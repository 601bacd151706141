"""What a server answers over streamable HTTP, checked before the SDK sees it: a JSON body, or a stream of events."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, MutableMapping
from dataclasses import replace
from typing import Any

import anyio
import httpx2
from mcp_types import PARSE_ERROR, jsonrpc_message_adapter
from pydantic import TypeAdapter, ValidationError

from squidbot.adapters.mcp.channel import Bounds, ChannelClosed, Oversize
from squidbot.adapters.mcp.events import Event, Events
from squidbot.adapters.mcp.frames import HEAVY, Noise, Unreadable, is_heavy, possible_ids, read_frame
from squidbot.adapters.mcp.http_failure import RequestId, error_frame, lost_frame
from squidbot.adapters.mcp.http_unasked import Unasked
from squidbot.adapters.mcp.network import describe
from squidbot.adapters.mcp.shelf import Shelf
from squidbot.adapters.mcp.turns import Turns

InFlight = MutableMapping[RequestId, anyio.CancelScope]
"""How to end what still runs for a request, by its id."""

_LARGE = 1_000_000
"""Bytes past which others get the loop between the steps of taking a message."""
_FAIR_SHARE = 64
"""Events after which others get the loop: those that are left out never wait for anything."""
_ANSWER = frozenset(("id", "result", "error"))
_JSON: TypeAdapter[Any] = TypeAdapter(Any)
"""Writes what was read, made valid by that, several times faster than `write_frame`, which must take anything."""


class Invalid(Exception):
    """What came is no answer to what was asked; the text says why."""


async def checked_body(body: bytes, request_id: RequestId, bounds: Bounds) -> dict[str, Any]:
    """The answer in `body`, made valid. Raises Invalid."""
    message = await _read(body, bounds)
    if "method" in message:
        raise Invalid("it is a request where an answer was due")
    _check(message)
    answered = message.get("id")
    if answered != request_id and str(answered) != str(request_id) and not (answered is None and "error" in message):
        raise Invalid("it answers another request")
    return {**message, "id": request_id}


def encoded(message: Mapping[str, Any]) -> bytes:
    """What was read and checked, for the SDK to read once more."""
    return _JSON.dump_json(message)


async def _read(body: bytes, bounds: Bounds) -> dict[str, Any]:
    try:
        message = read_frame(body, bounds)
    except Noise:
        raise Invalid("it is no JSON-RPC message" if body.strip() else "it is empty") from None
    except Unreadable as bad:
        raise Invalid(bad.reason) from None
    if len(body) > _LARGE:
        await asyncio.sleep(0)
    return message


def _check(message: dict[str, Any], *, heavy: bool = False) -> None:
    """Hold `message` to what the SDK can take. Raises Invalid."""
    if heavy:
        raise Invalid(f"it has more than {HEAVY} values in it")
    if "result" in message and "error" in message:
        raise Invalid("it has a result and an error")
    if "method" in message and "id" in message and message["id"] is None:
        raise Invalid("it asks with an id that is none")
    # What is in a result nobody looks at there, and it may be much.
    outline = {**message, "result": {}} if isinstance(message.get("result"), dict) else message
    try:
        jsonrpc_message_adapter.validate_python(outline, by_name=False)
    except ValidationError:
        raise Invalid("it is no JSON-RPC message") from None


def invalid_frame(request_id: RequestId | None, reason: str) -> bytes:
    """The error of a call whose answer cannot be used."""
    return error_frame(request_id, PARSE_ERROR, message=f"the server's answer cannot be read: {reason}")


class CheckedEvents(httpx2.AsyncByteStream):
    """A stream of events that holds nothing but valid messages, and never raises.

    `request_id` is the call that the stream answers, if it is one's: an answer that cannot be used is then that
    call's error. What a server says unasked is left out where it is not valid, or too much. One that was `resumed`, or
    that names its events, may end without the answer: it is taken up again.
    """

    def __init__(
        self,
        source: httpx2.AsyncByteStream,
        *,
        place: str,
        bounds: Bounds,
        request_id: RequestId | None,
        in_flight: InFlight,
        unasked: Unasked,
        shelf: Shelf,
        resumed: bool = False,
    ) -> None:
        self._source = source
        self._resumed = resumed
        self._place = place
        self._bounds = bounds
        self._request_id = request_id
        self._in_flight = in_flight
        self._unasked = unasked
        self._shelf = shelf

    async def __aiter__(self) -> AsyncIterator[bytes]:
        events = Events(self._bounds.bytes)
        chunks = aiter(self._source)
        turns = Turns()
        resumable, taken = self._resumed, 0
        cause = f"{self._place} ended the stream without an answer"
        try:
            while (chunk := await self._next(chunks)) is not None:
                complete = deque(events.feed(chunk))
                await turns.pause()  # what is at hand already never waits for anything, and may have many lines
                resumable = resumable or any(isinstance(event, Event) and event.id for event in complete)
                while complete:
                    taken += 1
                    if taken % _FAIR_SHARE == 0:
                        await asyncio.sleep(0)
                    # Taken off, so that a large one is gone while the SDK reads what became of it.
                    if passed := await self._passed(complete.popleft()):
                        yield passed
                if events.overflowing and self._request_id is not None:
                    yield self._blamed(_too_large(self._bounds.bytes))  # at once: on its own stream it is this call's
                    return
        except ChannelClosed as endless:
            cause, resumable = f"{self._place}: {endless}", False
        except Exception as error:  # noqa: BLE001 - raised into the SDK it would end every neighbour
            cause = describe(error, self._place)
        # A stream whose events have ids is taken up again by the SDK, as the protocol has it: nothing is sent twice.
        if self._request_id is not None and not resumable:
            yield Event("message", lost_frame(self._request_id, cause)).encoded()

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """The next chunk; None at the end, and when nobody waits for the answer any more."""
        with anyio.CancelScope() as scope:
            if self._request_id is not None:
                self._in_flight[self._request_id] = scope
            return await anext(chunks, None)
        return None

    async def _passed(self, event: Event | Oversize) -> bytes:
        """The event as it may go on; nothing if it may not."""
        if isinstance(event, Oversize):
            return self._blamed(_too_large(event.limit))
        if event.name != "message":
            return b""
        if not event.data:
            return event.encoded()
        if event.data.isspace():
            return _place_of(event)
        try:
            message = await _read(event.data, self._bounds)
        except Invalid as bad:
            # An answer may well speak of methods; what speaks of this call's id is one.
            beside = b'"method"' in event.data and str(self._request_id) not in map(str, possible_ids(event.data))
            return self._left_out(event, bad) if beside else self._blamed(str(bad))
        try:
            _check(message, heavy="method" in message and is_heavy(event.data))
        except Invalid as bad:
            beside = "method" in message or message.keys().isdisjoint(_ANSWER)
            return self._left_out(event, bad) if beside else self._blamed(str(bad))
        if self._unasked.admits(message, len(event.data)) if "method" in message else self._is_ours(message.get("id")):
            return replace(event, data=encoded(self._shelf.put(self._request_id, message))).encoded()
        return _place_of(event)

    def _left_out(self, event: Event, bad: Invalid) -> bytes:
        """What remains of something invalid that is not the answer, which may still come."""
        self._unasked.odd("invalid", "sent a request or a notification that is not valid: {}", bad)
        return _place_of(event)

    def _is_ours(self, answered: Any) -> bool:
        """Whether an answer is to this call: the SDK would take any on its stream for that."""
        return self._request_id is None or answered is None or str(answered) == str(self._request_id)

    def _blamed(self, reason: str) -> bytes:
        # Without a call of our own the id is null: the SDK puts in the call's where it resumes one's stream.
        return Event("message", invalid_frame(self._request_id, reason)).encoded()

    async def aclose(self) -> None:
        if self._request_id is not None:
            self._in_flight.pop(self._request_id, None)
        await self._source.aclose()


def _too_large(limit: int) -> str:
    return f"it is too large (limit {limit} bytes)"


def _place_of(event: Event) -> bytes:
    """What is left of an event that does not go on: where the stream is, for whoever takes it up again."""
    return b"" if event.id is None and event.retry is None else replace(event, data=b"").encoded()
