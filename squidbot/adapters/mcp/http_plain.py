"""HTTP without surprises: encodings undone within bounds, redirects only within the origin, no address in the dark.

Everything that squidbot asks of a remote server, a sign-in's own requests included, goes through `PlainHTTP`.
It raises httpx2's errors and `Refused`; whoever must not raise stands above it (`http_guard.py`).
"""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

import anyio
import httpx2

from squidbot.adapters.mcp.network import DEFAULT_PORTS, Origin, Refused, origin_of, public_address, tls, where
from squidbot.adapters.mcp.turns import Turns

SIGN_IN_FAILED = "squidbot.sign_in_failed"
"""The extension by which a sign-in that failed, itself no part of the transport, has its request fail with its error."""

_MOST_REDIRECTS = 5
_SMALL = 1_000_000
_AT_ONCE = 1.0
"""Bytes and seconds for a body that matters less than its status."""
_PIECE = 65_536
"""Bytes that are unpacked at a time: a bomb is measured while it goes off."""
_LIMITS = httpx2.Limits(max_connections=256, max_keepalive_connections=64)
"""Calls run side by side, each on a connection of its own; fewer would make one slow call hold up the others."""


def plain_http(*named: str | None) -> "PlainHTTP":
    """A transport to the urls that the settings name, and to public addresses over TLS."""
    inner = httpx2.AsyncHTTPTransport(verify=tls(), trust_env=False, limits=_LIMITS)
    return PlainHTTP(inner, named=frozenset(origin_of(url) for url in named if url is not None))


class PlainHTTP(httpx2.AsyncBaseTransport):
    """Wraps a transport; `named` are the origins of the settings, which may be any."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, *, named: frozenset[Origin]) -> None:
        self._inner = inner
        self._named = named

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises httpx2.TransportError (Refused among them), DecodingError, and a sign-in's MCPConnectionError."""
        if (failed := request.extensions.get(SIGN_IN_FAILED)) is not None:
            raise failed
        request.headers["accept-encoding"] = "gzip, deflate"
        if request.url.scheme == "https":
            request.extensions = {**request.extensions, "trace": _let_go_of_half_open()}
        for _ in range(_MOST_REDIRECTS):
            response = await self._inner.handle_async_request(await self._permitted(request))
            if not response.has_redirect_location:
                return _decoded(response)
            await response.aclose()
            request = _redirected(request, response.headers["location"])
        raise Refused(f"{where(request.url)} redirects in circles")

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _permitted(self, request: httpx2.Request) -> httpx2.Request:
        """The request as it may be sent: one to a host that no settings name goes to a checked address."""
        scheme, host, port = origin_of(request.url)
        if self._is_named((scheme, host, port)):
            return request
        if scheme != "https":
            raise Refused(
                f"{scheme}://{where(request.url)} is not asked: the settings do not name it and it has no TLS"
            )
        address = await public_address(host, port or DEFAULT_PORTS["https"])
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )

    def _is_named(self, origin: Origin) -> bool:
        scheme, host, port = origin
        return origin in self._named or (scheme == "https" and port is None and ("http", host, None) in self._named)


def _let_go_of_half_open() -> Callable[[str, Mapping[str, Any]], Awaitable[None]]:
    """Closes a connection whose TLS did not come about, which is otherwise left open when nobody waits any more."""
    opened: list[Any] = []

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            opened.append(info["return_value"])
        elif event == "connection.start_tls.failed":
            with anyio.CancelScope(shield=True):
                for stream in opened:
                    await stream.aclose()

    return trace


async def read_body(response: httpx2.Response, limit: int) -> bytes:
    """The whole body, decoded. Raises Refused past `limit` bytes, and what the transport raises."""
    parts: list[bytes] = []
    size = 0
    turns = Turns()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    try:
        async for part in response.stream:
            await turns.pause()  # what is at hand already never waits for anything, and may be in many pieces
            size += len(part)
            if size > limit:
                raise Refused(f"answer larger than {limit / 1_000_000:g} MB (limit {limit} bytes)")
            parts.append(part)
    finally:
        await response.aclose()
    return b"".join(parts)


async def read_rest(response: httpx2.Response) -> bytes:
    """What a server says beside a status, as far as it says it at once; never raises.

    It is read to its end where possible, so that the connection can be used again.
    """
    with anyio.move_on_after(_AT_ONCE):
        if media_type(response) != "text/event-stream":
            try:
                return await read_body(response, _SMALL)
            except (httpx2.TransportError, httpx2.DecodingError):
                return b""
    with anyio.move_on_after(_AT_ONCE):
        await response.aclose()
    return b""


def media_type(response: httpx2.Response) -> str:
    """The kind of the body, without its parameters."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def same_origin(url: httpx2.URL, other: httpx2.URL) -> bool:
    """Whether `other` is where `url` is, or the same place with TLS added, and brings no credentials of its own."""
    scheme, host, port = origin_of(url)
    here = origin_of(other) == (scheme, host, port) or (
        (scheme, port) == ("http", None) and origin_of(other) == ("https", host, None)
    )
    return here and (not other.userinfo or other.userinfo == url.userinfo)


def _redirected(request: httpx2.Request, location: str) -> httpx2.Request:
    """The same request at `location`. Raises Refused where that would leave the origin."""
    place = where(request.url)
    try:
        url = request.url.join(location)
    except httpx2.InvalidURL:
        raise Refused(f"{place} redirects to what is no url") from None
    if url.scheme not in DEFAULT_PORTS or not url.host:
        raise Refused(f"{place} redirects to what is no web address; that is not followed")
    if not same_origin(request.url, url):
        raise Refused(f"{place} redirects to {url.scheme}://{where(url)}; that is not followed")
    return httpx2.Request(
        request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
    )


def _decoded(response: httpx2.Response) -> httpx2.Response:
    """The response with its encoding undone as it is read. Raises DecodingError for one nobody asked for."""
    names = [name.strip().lower() for name in response.headers.get("content-encoding", "").split(",")]
    match [name for name in names if name not in ("", "identity")]:
        case []:
            return response
        case ["gzip" | "x-gzip"]:
            unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        case ["deflate"]:
            unpack = zlib.decompressobj()
        case [*others]:
            raise httpx2.DecodingError(f"an encoding that nobody asked for: {', '.join(others)[:80]!r}")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    headers = response.headers.copy()
    for name in ("content-encoding", "content-length"):
        headers.pop(name, None)
    stream = _Unpacked(response.stream, unpack, may_be_bare="deflate" in names)
    return httpx2.Response(response.status_code, headers=headers, stream=stream, extensions=response.extensions)


class _Unpacked(httpx2.AsyncByteStream):
    """The body of a compressed answer, unpacked in small pieces."""

    def __init__(self, packed: httpx2.AsyncByteStream, unpack: "zlib._Decompress", *, may_be_bare: bool) -> None:
        self._packed = packed
        self._unpack = unpack
        self._may_be_bare = may_be_bare

    async def __aiter__(self) -> AsyncIterator[bytes]:
        first = True
        try:
            async for chunk in self._packed:
                for piece in self._pieces(chunk, first=first):
                    yield piece
                first = False
            if not first and not self._unpack.eof:
                raise httpx2.RemoteProtocolError("the compressed answer was cut short")
        except zlib.error:
            raise httpx2.DecodingError("the compressed answer cannot be unpacked") from None

    def _pieces(self, chunk: bytes, *, first: bool) -> Iterator[bytes]:
        try:
            piece = self._unpack.decompress(chunk, _PIECE)
        except zlib.error:
            if not (first and self._may_be_bare):
                raise
            # Some servers mean bare deflate where the standard means deflate within zlib.
            self._unpack = zlib.decompressobj(-zlib.MAX_WBITS)
            piece = self._unpack.decompress(chunk, _PIECE)
        while piece:
            yield piece
            piece = self._unpack.decompress(self._unpack.unconsumed_tail, _PIECE)

    async def aclose(self) -> None:
        await self._packed.aclose()
