"""Streamable HTTP: the SDK's transport, on HTTP of ours."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from squidbot.adapters.mcp.http_client import open_client
from squidbot.adapters.mcp.http_guard import HTTPGuard
from squidbot.adapters.mcp.shelf import Shelf
from squidbot.adapters.mcp.transport import Opening, SDKStreams
from squidbot.config.schema import MCPServerConfig

_MARGIN = 65_536
"""Events are bounded before the SDK sees them; its own bound must not strike first."""


@asynccontextmanager
async def open_http(config: MCPServerConfig, opening: Opening) -> AsyncIterator[SDKStreams]:
    """The SDK's streams. Nothing is sent yet: what is wrong with the server is the first request's error."""
    bounds, shelf = opening.bounds, Shelf()

    def guard(inner: httpx2.AsyncBaseTransport, timeout: float) -> httpx2.AsyncBaseTransport:
        return HTTPGuard(inner, server=config.name, bounds=bounds, timeout=timeout, shelf=shelf, tasks=tasks)

    try:
        async with anyio.create_task_group() as tasks:
            async with (
                open_client(config, opening, wrap=guard) as client,
                streamable_http_client(
                    config.url or "",
                    http_client=client,
                    terminate_on_close=config.terminate_on_close,
                    max_sse_event_size=2 * bounds.bytes + _MARGIN,
                ) as (read, write),
            ):
                yield read, write, shelf
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The guard's tasks raise nothing: what is in the group is what was raised beside them.
        raise group.exceptions[0] from None
