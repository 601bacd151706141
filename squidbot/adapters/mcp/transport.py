"""What a transport is: a function that opens a way to one server."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from squidbot.adapters.mcp.channel import Bounds, Channel
from squidbot.adapters.mcp.shelf import Shelf
from squidbot.config.schema import MCPServerConfig

SDKStreams: TypeAlias = tuple[Any, Any] | tuple[Any, Any, Shelf]
"""The SDK's own message streams (read, write): servers in memory, and streamable HTTP, whose results are on a shelf."""

Streams: TypeAlias = Channel | SDKStreams

SignIn: TypeAlias = Callable[[str], Awaitable[None]]
"""Shows a person the address at which to sign in."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a transport is told beside the server's own settings."""

    bounds: Bounds
    state: Path | None = None
    """The state folder, where tokens are kept; without one they live as long as the connection."""
    sign_in: SignIn | None = None
    """Absent unless a person is there to sign in: then an OAuth flow that needs a browser fails with a hint instead."""


class Transport(Protocol):
    """Opens a way to one server; the settings are resolved. Raises MCPConnectionError on entering."""

    def __call__(self, config: MCPServerConfig, opening: Opening, /) -> AbstractAsyncContextManager[Streams]: ...
