"""Waits on loopback for the browser to come back from a sign-in."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from squidbot.core.domain.errors import MCPConnectionError

PATH = "/callback"
_MOST = 16_384
"""Bytes of a request: a code and a state are short."""
_PATIENCE = 5.0

_PAGE = """<!doctype html><meta charset="utf-8"><title>squidbot</title><p>{words}</p>"""


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def waiting(port: int, state: str) -> AsyncIterator["asyncio.Future[AuthorizationCodeResult]"]:
    """A listener for the one answer that carries `state`; anything else is turned away and changes nothing.

    Raises OSError if the port is taken. The future raises MCPConnectionError if the sign-in was refused.
    """
    answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(_reply(request, state, answer))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(visit, "127.0.0.1", port, limit=_MOST)
    async with server:
        yield answer


def _reply(request: bytes, state: str, answer: "asyncio.Future[AuthorizationCodeResult]") -> bytes:
    method, _, rest = request.partition(b" ")
    target = urlsplit(rest.partition(b" ")[0].decode("latin-1"))
    given = {name: values[-1] for name, values in parse_qs(target.query, max_num_fields=20).items()}
    if method != b"GET" or target.path != PATH or given.get("state") != state or answer.done():
        return _page("400 Bad Request", "This is not the answer that squidbot waits for.")
    if "code" not in given:
        reason = given.get("error", "no code")[:80]
        answer.set_exception(MCPConnectionError(f"the sign-in was refused: {reason!r}", status=401, permanent=True))
        return _page("200 OK", "The sign-in was refused. You can close this window.")
    answer.set_result(AuthorizationCodeResult(code=given["code"], state=state, iss=given.get("iss")))
    return _page("200 OK", "You are signed in. You can close this window.")


def _page(status: str, words: str) -> bytes:
    body = _PAGE.format(words=words).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
