"""The HTTP client for one server: its headers, its deadlines, its sign-in."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2

from squidbot.adapters.mcp.cookies import SmallJar
from squidbot.adapters.mcp.http_plain import plain_http
from squidbot.adapters.mcp.network import unsendable, where
from squidbot.adapters.mcp.oauth import auth_for
from squidbot.adapters.mcp.transport import Opening
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError

PATIENCE = 30.0
"""Seconds for connecting and sending, where the settings do not say."""

Wrap = Callable[[httpx2.AsyncBaseTransport, float], httpx2.AsyncBaseTransport]


@asynccontextmanager
async def open_client(
    config: MCPServerConfig, opening: Opening, *, wrap: Wrap | None = None
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that asks only what the settings name. Raises MCPConnectionError for settings that cannot be used."""
    timeout = config.timeout or PATIENCE
    try:
        transport: httpx2.AsyncBaseTransport = plain_http(config.url, config.auth.issuer if config.auth else None)
        client = httpx2.AsyncClient(
            transport=wrap(transport, timeout) if wrap else transport,
            headers=config.headers,
            cookies=SmallJar(),
            auth=auth_for(config, opening),
            timeout=httpx2.Timeout(timeout, read=config.sse_read_timeout),
            follow_redirects=False,
            trust_env=False,
        )
    except httpx2.InvalidURL:
        raise MCPConnectionError("the url is no valid url", server=config.name, permanent=True) from None
    except UnicodeEncodeError:
        raise unsendable(config.name, where(config.url or "")) from None
    async with client:
        yield client
