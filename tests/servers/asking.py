"""Calls the tools of the github and jira servers on an API that really listens, in the practice world or beside it."""

import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import uvicorn
from mcp import Client
from mcp_types import CallToolResult, TextContent
from starlette.types import ASGIApp

from squidbot.servers.github import catalogue as github_catalogue
from squidbot.servers.github.api import github
from squidbot.servers.jira import catalogue as jira_catalogue
from squidbot.servers.jira.api import Jira, Version, jira
from squidbot.servers.protocol import build_server
from squidbot.servers.rest import RestClient

DEADLINE = 30.0


@asynccontextmanager
async def on_github(
    url: str, token: str = "practice-token", *, deadline: float = DEADLINE
) -> AsyncIterator[tuple[Client, RestClient]]:
    """The github server for whoever owns the token."""
    async with RestClient(replace(github(url, token), deadline=deadline)) as rest:
        server = build_server("github", instructions="", tools=github_catalogue.TOOLS, world=rest)
        async with Client(server, mode="legacy", read_timeout_seconds=DEADLINE) as client:
            yield client, rest


@asynccontextmanager
async def on_jira(
    url: str, token: str = "practice-token", *, username: str | None = None, version: Version | None = None
) -> AsyncIterator[Client]:
    """The jira server for whoever owns the token: a personal one, unless there is a name."""
    async with RestClient(jira(url, username=username, token=token)) as rest:
        world = Jira(rest, version)
        server = build_server("jira", instructions="", tools=jira_catalogue.TOOLS, world=world)
        async with Client(server, mode="legacy", read_timeout_seconds=DEADLINE) as client:
            yield client


@asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    """An application on a port of its own, in this loop; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = _Quiet(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, ws="none"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True


class _Quiet(uvicorn.Server):
    """uvicorn without its hands on the test run's signals."""

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
        return contextlib.nullcontext()


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def done(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    return result.structured_content


async def told(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    return text(result)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text(result)
    return text(result)
