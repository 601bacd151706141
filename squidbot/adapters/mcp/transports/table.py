"""The table that picks a transport by its name; the container hands it on, so one override swaps or adds one."""

from collections.abc import Mapping
from types import MappingProxyType

from squidbot.adapters.mcp.transport import Transport
from squidbot.adapters.mcp.transports.http import open_http
from squidbot.adapters.mcp.transports.sse import open_sse
from squidbot.adapters.mcp.transports.stdio import open_stdio
from squidbot.adapters.mcp.transports.websocket import open_websocket

TRANSPORTS: Mapping[str, Transport] = MappingProxyType(
    {"stdio": open_stdio, "sse": open_sse, "websocket": open_websocket, "http": open_http}
)
