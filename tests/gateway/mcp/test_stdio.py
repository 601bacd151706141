"""The same door over a pipe: for a client that only knows how to start a command."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.shared.memory import create_client_server_memory_streams

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.gateway.mcp.stdio import serve_streams
from tests.fixtures.running import running, until
from tests.gateway.mcp.house import House, house

pytestmark = [pytest.mark.anyio, pytest.mark.deadline(90), pytest.mark.requirement("G-01")]
GRANTS = ["echo", "progress", "ask", "toggle", "extra"]


@asynccontextmanager
async def client_of(opened: House, **options: Any) -> AsyncIterator[Client]:
    """The SDK's client at the other end of a pipe."""

    @asynccontextmanager
    async def transport() -> AsyncIterator[Any]:
        async with (
            create_client_server_memory_streams() as (client_side, (read, write)),
            anyio.create_task_group() as tasks,
        ):
            door = opened.door
            tasks.start_soon(
                lambda: serve_streams(door, door.hub, Caller("tester"), read, write, options=EndpointOptions())
            )
            yield client_side
            tasks.cancel_scope.cancel()

    async with Client(transport(), **options) as client:
        yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_caller_over_a_pipe_has_what_its_role_has(mode: Any) -> None:
    """Lists, calls, progress in order before the answer, questions, changes, and the same wall."""
    heard: list[str] = []
    seen: list[float] = []

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"colour": "green"})

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.append("tools")

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    with running("stdio") as entry:
        async with (
            house({"world": entry}, {"tester": {"tools": {"world": GRANTS}}}) as opened,
            client_of(opened, mode=mode, elicitation_callback=elicit, message_handler=on_message) as client,
            anyio.create_task_group() as tasks,
        ):
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [f"mcp_world_{name}" for name in sorted(set(GRANTS) - {"extra"})]
            await client.call_tool("mcp_world_progress", {"steps": 3}, progress_callback=note)
            assert seen == [1.0, 2.0, 3.0]
            assert "green" in str((await client.call_tool("mcp_world_ask")).content[0])
            with pytest.raises(MCPError, match="Unknown tool: mcp_world_add"):
                await client.call_tool("mcp_world_add", {"a": 1, "b": 2})
            if mode == "auto":
                ready = anyio.Event()

                async def listen() -> None:
                    async with client.listen(tools_list_changed=True) as changes:
                        ready.set()
                        async for _ in changes:
                            heard.append("tools")

                tasks.start_soon(listen)
                await ready.wait()
            await client.call_tool("mcp_world_toggle")
            await until(lambda: heard, what="the change")
            tasks.cancel_scope.cancel()
