"""What went wrong on the way to a host, in plain words, and which hosts may be spoken to at all."""

import errno
import functools
import http
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import TypeAlias

import anyio
import httpx2

from squidbot.adapters.mcp.http_outcome import HINTS
from squidbot.core.domain.errors import MCPConnectionError

Origin: TypeAlias = tuple[str, str, int | None]
"""Scheme, host, port; the port of the scheme itself is None."""

DEFAULT_PORTS: Mapping[str, int] = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def unsendable(server: str, place: str) -> MCPConnectionError:
    """The error for a header that cannot be sent; its value may be a secret."""
    return MCPConnectionError(
        f"a header for {place} has characters that HTTP headers cannot carry",
        server=server,
        hint="Headers are ASCII: check `headers`, and the secrets that they take from variables.",
        permanent=True,
    )


class Refused(httpx2.TransportError):
    """We would not do what the server led to; the text says what, for people."""


def origin_of(url: httpx2.URL | str) -> Origin:
    """Where `url` is, without the rest of it."""
    parsed = httpx2.URL(url) if isinstance(url, str) else url
    return parsed.scheme, parsed.host, parsed.port


def where(url: httpx2.URL | str) -> str:
    """Host and port of `url` for a message: never its userinfo, path or query, which may hold secrets."""
    scheme, host, port = origin_of(url)
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port or DEFAULT_PORTS.get(scheme, '?')}"


@functools.cache
def tls() -> ssl.SSLContext:
    """The one TLS context, with the system's authorities (or SSL_CERT_FILE): reading them takes long."""
    return httpx2.create_ssl_context()


def status_text(status: int) -> str:
    """`HTTP 401 Unauthorized`; a status of the server's own invention has only its number."""
    try:
        return f"HTTP {status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, from either form of the header."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (socket.gaierror, "the host name of {place} cannot be found"),
    (ConnectionRefusedError, "connection refused by {place}"),
    (ConnectionResetError, "connection reset by {place}"),
    (BrokenPipeError, "connection reset by {place}"),
    (httpx2.ConnectTimeout, "no connection to {place} in time"),
    (httpx2.PoolTimeout, "too many requests to {place} at once"),
    (httpx2.WriteTimeout, "{place} stopped reading"),
    (httpx2.TimeoutException, "no answer from {place} in time"),
    (TimeoutError, "no answer from {place} in time"),
    (httpx2.RemoteProtocolError, "the connection to {place} broke off, or it does not speak HTTP"),
    (httpx2.DecodingError, "{place} sent {cause}"),
    (httpx2.NetworkError, "the connection to {place} was lost"),
    (MemoryError, "this machine has no more memory for what {place} sends"),
)

_LACKING: Mapping[int | None, str] = {
    errno.EMFILE: "this process has no more open files to give (see `ulimit -n`)",
    errno.ENFILE: "this machine has no more open files to give",
    errno.ENOMEM: "this machine has no more memory to give",
}


def describe(error: BaseException, place: str) -> str:
    """Why `place` could not be reached or was lost; `place` is what `where` gives."""
    causes = list(_causes(error))
    for cause in causes:
        match cause:
            case Refused():
                return str(cause)
            case ssl.SSLCertVerificationError():
                return (
                    f"the certificate of {place} is not trusted: {getattr(cause, 'verify_message', 'no reason given')}"
                )
            case OSError(errno=number) if number in _LACKING:
                return f"no connection to {place}: {_LACKING[number]}"
            case ssl.SSLError():
                return f"no TLS with {place}: {(getattr(cause, 'reason', None) or 'handshake failed').replace('_', ' ').lower()}"
    for cause in causes:
        for kind, words in _WORDS:
            if isinstance(cause, kind):
                return words.format(place=place, cause=cause)
    said = next((cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror), None)
    return f"no way to {place}: {said}" if said else f"{type(error).__name__} with {place}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all beneath it, suppressed or not, the deepest first: the system's own word is the most exact."""
    beneath = error.__cause__ or error.__context__
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    if beneath is not None:
        yield from _causes(beneath)
    yield error


def refused(status: int, *, server: str, place: str, headers: Mapping[str, str]) -> MCPConnectionError:
    """The error for a connection that was answered with an HTTP status instead of being opened."""
    return MCPConnectionError(
        f"{place} answered {status_text(status)}",
        server=server,
        hint=HINTS.get(status),
        status=status,
        retry_after=retry_after(headers),
        permanent=400 <= status < 500 and status not in (408, 425, 429),
    )


def unreachable(error: BaseException, *, server: str, place: str) -> MCPConnectionError:
    """The error for a connection that could not be opened at all."""
    return MCPConnectionError(
        describe(error, place), server=server, hint=what_to_try(error), permanent=stays_the_same(error)
    )


_OTHER_LANGUAGE = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNSUPPORTED_PROTOCOL"})
"""How TLS says that the other end does not speak it, or none that we do."""


def stays_the_same(error: BaseException) -> bool:
    """Whether the same attempt would fail in the same way a moment later: a certificate does not mend itself."""
    return any(
        isinstance(cause, ssl.SSLCertVerificationError)
        or (isinstance(cause, ssl.SSLError) and getattr(cause, "reason", None) in _OTHER_LANGUAGE)
        for cause in _causes(error)
    )


def what_to_try(error: BaseException) -> str:
    """What to do about a connection that could not be opened at all."""
    causes = list(_causes(error))
    if any(isinstance(cause, OSError) and cause.errno in _LACKING for cause in causes):
        return "The server is not at fault: close something, or allow this process more."
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return "Trust its authority with SSL_CERT_FILE, or ask its owner for a valid certificate."
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "Does the server speak TLS on this port? Plain text is never tried instead."
    return "Is the server running, and is the url right?"


async def public_address(host: str, port: int) -> str:
    """An address of `host` that anybody on the internet could reach; raises Refused.

    Whatever a server makes us fetch must not reach what only this machine can: loopback, the private
    network, a cloud's metadata service. The address is returned to be connected to as it is, so that a
    name cannot mean one thing when checked and another when used. The resolver also takes the spellings
    that hide an address (decimal, octal, IPv4 in IPv6), so they are judged by what they mean.
    """
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpx2.ConnectError(f"the host name {host!r} cannot be found") from error
    addresses = [info[4][0] for info in found]
    if not addresses or not all(_is_public(address) for address in addresses):
        raise Refused(f"{host!r} is not a public address and the settings do not name it")
    return addresses[0]


_NOT_PUBLIC_4 = (
    ipaddress.ip_network("192.0.0.0/24"),  # the IETF's own, and one cloud's metadata service
    ipaddress.ip_network("168.63.129.16/32"),  # a cloud's service for its own machines
)
_NOT_PUBLIC_6 = (
    ipaddress.ip_network("::/96"),  # IPv4 in a spelling that nobody uses any more
    ipaddress.ip_network("64:ff9b:1::/48"),  # a network's own translation to IPv4
)
"""What `is_global` takes for public, or did in older Pythons, and is not."""


def _is_public(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return _is_public(str(parsed.ipv4_mapped))
        if not all(_is_public(str(inner)) for inner in _hidden(parsed)):
            return False
        if parsed.is_site_local or any(parsed in network for network in _NOT_PUBLIC_6):
            return False
    elif any(parsed in network for network in _NOT_PUBLIC_4):
        return False
    return parsed.is_global and not parsed.is_multicast


_WITH_IPV4_LAST = (
    ipaddress.ip_network("64:ff9b::/96"),  # translation to IPv4
    ipaddress.ip_network("::ffff:0:0:0/96"),  # the same, older
)
_ISATAP = 0x5EFE
_ISATAP_FLAGS = 0x03000000
"""Two bits that may be set before it: universal, group."""


def _hidden(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    """Every IPv4 address that packets for `address` may be handed to, in whatever it is wrapped."""
    last = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if any(address in network for network in _WITH_IPV4_LAST):
        yield last
    if (int(address) >> 32) & 0xFFFFFFFF & ~_ISATAP_FLAGS == _ISATAP:
        yield last
