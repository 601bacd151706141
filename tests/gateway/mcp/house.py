"""The MCP endpoint on a real port, with real servers behind it; whoever comes says in a header who they are."""

import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.types import ASGIApp, Receive, Scope, Send

from squidbot.adapters.store.store import SQLStore
from squidbot.config.documents import Document
from squidbot.config.load import check_document
from squidbot.container import Container
from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.domain.members import Principal
from squidbot.core.services.door import AgentMCPService
from squidbot.gateway.mcp.endpoint import MCPEndpoint
from squidbot.gateway.wire import HTTPServer
from tests.fixtures.running import Entry
from tests.fixtures.running import listening as loopback

KEY = b"k" * 32
HEADER = b"x-test-role"


@dataclass(frozen=True, slots=True)
class House:
    """A door and its endpoint, in the same process as the test."""

    url: str
    door: AgentMCPService
    endpoint: MCPEndpoint
    store: SQLStore

    def at(self, server: str | None = None) -> str:
        return self.url if server is None else f"{self.url}/{server}"

    @asynccontextmanager
    async def client(self, role: str, server: str | None = None, **options: Any) -> AsyncIterator[Client]:
        """The SDK's client, as a member in a role."""
        async with (
            self.http(role) as http,
            Client(streamable_http_client(self.at(server), http_client=http), **options) as client,
        ):
            yield client

    @asynccontextmanager
    async def http(self, role: str | None) -> AsyncIterator[httpx2.AsyncClient]:
        """Plain HTTP, as a member in a role."""
        headers = {} if role is None else {HEADER.decode(): role}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            yield http


def known(app: ASGIApp) -> ASGIApp:
    """Puts a principal where the gateway's own admission would: the member `m-ROLE` by the token `t-ROLE`."""

    async def admit(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            role = next((value.decode() for name, value in scope["headers"] if name == HEADER), None)
            if role is not None:
                who = Principal(f"m-{role}", role, f"t-{role}", role=role.removesuffix("~") or None)
                scope["state"] = {**scope.get("state", {}), "principal": who}
            await app(scope, receive, send)

    return admit


@asynccontextmanager
async def house(
    servers: Mapping[str, Entry],
    roles: Mapping[str, Any],
    *,
    options: EndpointOptions | None = None,
    admit: Callable[[ASGIApp], ASGIApp] | None = None,
    **settings: Any,
) -> AsyncIterator[House]:
    """An endpoint in front of these servers, once all of them are there."""
    document = {
        "tools": {"mcp_servers": dict(servers)},
        "roles": dict(roles),
        "limits": [{"role": "*", "rate": "100000/s", "burst": 1_000_000}],
        "alerts": {"rules": {"burst": {"enabled": False}, "refusals": {"enabled": False}}},
        **settings,
    }
    checked = check_document(Document(document, {}), source=None).resolved()
    container = Container(settings=checked, converses=True)
    async with container.service() as door, anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as starting:
            for name in servers:
                starting.start_soon(door.source.connect, name)
        async with (
            MCPEndpoint(door, container.hub(), key=_key, options=options) as endpoint,
            listening((admit or known)(endpoint), tasks) as url,
        ):
            yield House(f"{url}/mcp", door, endpoint, container.store())
            endpoint.drain()


@asynccontextmanager
async def listening(app: ASGIApp, tasks: anyio.abc.TaskGroup) -> AsyncIterator[str]:
    """An application on a port of its own."""
    with loopback() as listener:
        server = HTTPServer(app)
        ended = anyio.Event()
        tasks.start_soon(_serve, server, listener, ended)
        await server.ready.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            with anyio.move_on_after(10, shield=True):
                await ended.wait()


async def _serve(server: HTTPServer, listener: socket.socket, ended: anyio.Event) -> None:
    await server.serve([listener])
    ended.set()


async def _key() -> bytes:
    return KEY
