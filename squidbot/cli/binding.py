"""Takes the address that the gateway listens on, and refuses one that would leave it open."""

import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any

from squidbot.cli.errors import CommandError

_BACKLOG = 1_024


def bound(host: str, port: int, *, allowed_hosts: Sequence[str]) -> socket.socket:
    """A socket that listens at `host` and `port`. Raises CommandError."""
    if not is_loopback(host) and not allowed_hosts:
        raise CommandError(
            f"{host!r} can be reached from other machines, and the settings do not say by which names",
            code="settings",
            hint='Name them, and put TLS in front (docs/deploy.md): "gateway": {"allowed_hosts": ["squidbot.example.com"]}',
        )
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return _listening(address[:2], family)
    except OSError as error:
        raise _unusable(host, port, error) from None


def one_each(listener: socket.socket, count: int) -> list[socket.socket]:
    """As many sockets at the address of this one, which is closed: the system shares connections out among them.

    At one socket, whoever is quick takes all that come at once. Raises CommandError. Where the system cannot, one is for all.
    """
    if sys.platform != "linux":
        return [listener] * count
    address = listener.getsockname()[:2]
    listener.close()
    taken: list[socket.socket] = []
    try:
        while len(taken) < count:
            taken.append(_listening(address, listener.family, reuse_port=True))
    except OSError as error:
        for each in taken:
            each.close()
        raise _unusable(address[0], address[1], error) from None
    return taken


def _listening(address: tuple[Any, ...], family: int, *, reuse_port: bool = False) -> socket.socket:
    listener = socket.create_server(address, family=family, backlog=_BACKLOG, reuse_port=reuse_port)
    # Connections inherit it; asyncio does not see that a socket of create_server is TCP's, and answers would wait 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    """Where commands of this machine reach it."""
    return address_at(*listener.getsockname()[:2])


def address_at(host: str, port: int) -> str:
    """The same for an address that nobody may be listening at."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - every address: one of them is this machine's own
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unusable(host: str, port: int, error: OSError) -> CommandError:
    match error.errno:
        case errno.EADDRINUSE:
            message = f"port {port} of {host} is taken"
            hint = "If by a gateway of yours, 'squidbot status' asks it. '--port 0' takes any free one; gateway.port sets it."
        case errno.EACCES:
            message = f"port {port} of {host} is for root alone"
            hint = "Take one from 1024 on, and put a reverse proxy in front (docs/deploy.md)."
        case _:
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)
            message = f"the gateway cannot listen at {host} port {port}: {reason}"
            hint = (
                "--host and --port, or gateway.host and gateway.port of the settings, name an address of this machine."
            )
    return CommandError(message, code="address", hint=hint)
