"""Reads a request's body whole before anybody works on it: within a size, and within a time."""

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from squidbot.gateway.answers import error

LARGEST = 4 * 1024 * 1024
"""Bytes."""
_DIGITS = 12
SECONDS = 30.0
"""For the whole body: who sends a byte at a time is not waited for."""


class Bodies:
    """Wraps whatever is there for people who are let in."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if length.isdigit() and (len(length) > _DIGITS or int(length) > LARGEST):
            await _TOO_LARGE(scope, receive, send)
            return
        try:
            with anyio.fail_after(SECONDS):
                body = await _whole(receive)
        except TimeoutError:
            await error(408, "too_slow", f"the request took longer than {SECONDS:g} s to arrive")(scope, receive, send)
            return
        except _TooLarge:
            await _TOO_LARGE(scope, receive, send)
            return
        if body is None:
            return
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)


class _TooLarge(Exception):
    """More came than may come."""


async def _whole(receive: Receive) -> bytes | None:
    """The body, None if whoever sent it went away before its end. Raises _TooLarge."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST:
            raise _TooLarge
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


_TOO_LARGE = error(413, "too_large", f"the request is larger than {LARGEST // 1024 // 1024} MiB")
