"""The table that picks a transport by its name; the container hands it on, so one override swaps or adds one.

What the network needs is loaded by whoever first opens a way to it, and in a thread: most servers are processes, and
those must not wait for the half second that it takes.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

from squidbot.adapters.mcp.apart import apart
from squidbot.adapters.mcp.transport import Opening, Streams, Transport
from squidbot.adapters.mcp.transports.stdio import open_stdio
from squidbot.config.schema import MCPServerConfig


def _loaded_apart(load: Callable[[], Transport]) -> Transport:
    """The transport that `load` gives, asked for only when it is opened."""

    @asynccontextmanager
    async def opened(config: MCPServerConfig, opening: Opening, /) -> AsyncIterator[Streams]:
        transport = await apart(load)
        async with transport(config, opening) as streams:
            yield streams

    return opened


def _sse() -> Transport:
    from squidbot.adapters.mcp.network import tls
    from squidbot.adapters.mcp.transports.sse import open_sse

    tls()
    return open_sse


def _websocket() -> Transport:
    from squidbot.adapters.mcp.transports.websocket import open_websocket

    return open_websocket


def _http() -> Transport:
    import squidbot.adapters.mcp.stream_dispatcher  # noqa: F401 - what its streams are read by
    from squidbot.adapters.mcp.network import tls
    from squidbot.adapters.mcp.transports.http import open_http

    tls()
    return open_http


TRANSPORTS: Mapping[str, Transport] = MappingProxyType(
    {
        "stdio": open_stdio,
        "sse": _loaded_apart(_sse),
        "websocket": _loaded_apart(_websocket),
        "http": _loaded_apart(_http),
    }
)
