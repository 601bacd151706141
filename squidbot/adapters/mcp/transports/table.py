"""The table that picks a transport by its name; the container hands it on, so one override swaps or adds one.

What the network needs is loaded by whoever first opens a way to it: most servers are processes.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType

from squidbot.adapters.mcp.transport import Opening, Streams, Transport
from squidbot.adapters.mcp.transports.stdio import open_stdio
from squidbot.config.schema import MCPServerConfig


def _open_sse(config: MCPServerConfig, opening: Opening) -> AbstractAsyncContextManager[Streams]:
    from squidbot.adapters.mcp.transports.sse import open_sse

    return open_sse(config, opening)


def _open_websocket(config: MCPServerConfig, opening: Opening) -> AbstractAsyncContextManager[Streams]:
    from squidbot.adapters.mcp.transports.websocket import open_websocket

    return open_websocket(config, opening)


def _open_http(config: MCPServerConfig, opening: Opening) -> AbstractAsyncContextManager[Streams]:
    from squidbot.adapters.mcp.transports.http import open_http

    return open_http(config, opening)


TRANSPORTS: Mapping[str, Transport] = MappingProxyType(
    {"stdio": open_stdio, "sse": _open_sse, "websocket": _open_websocket, "http": _open_http}
)
