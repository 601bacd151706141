"""The SDK's own client in both eras, through the endpoint, to a server that has one of everything."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError

from squidbot.core.domain.callers import Caller
from tests.fixtures.running import running, until
from tests.gateway.mcp.house import House, house

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.deadline(90),
    # The SDK warns of what the stateless era no longer has, in its own client of the other era.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
MODES = ("legacy", "auto")
ROLE = "tester"
ADMIN = Caller("operator", origin="cli")


@asynccontextmanager
async def world(grants: list[str] | None = None, *options: str) -> AsyncIterator[House]:
    """The house in front of one world, of which the role has all, or what is granted."""
    with running("stdio", *options) as entry:
        async with house({"world": entry}, {ROLE: {"tools": {"world": grants or ["*"]}}}) as opened:
            yield opened


@pytest.mark.requirement("G-01", "G-08")
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_lists_and_calls_at_both_paths(mode: Any) -> None:
    """All servers under joined names, one server under its own: the same wall, and nothing lost on the way."""
    async with world() as opened:
        for server, prefix in ((None, "mcp_world_"), ("world", "")):
            seen: list[float] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                seen.append(progress)  # noqa: B023 - it is called within this turn

            async with opened.client(ROLE, server, mode=mode) as client:
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                assert list(tools) == sorted(tools)
                assert tools[f"{prefix}add"].output_schema is not None
                added = await client.call_tool(f"{prefix}add", {"a": 2, "b": 3})
                assert added.structured_content == {"sum": 5}
                kinds = await client.call_tool(f"{prefix}kinds")
                found = [block.type for block in kinds.content]
                assert found == ["text", "image", "audio", "resource", "resource", "resource_link"]
                await client.call_tool(f"{prefix}progress", {"steps": 3}, progress_callback=note)
                assert seen == [1.0, 2.0, 3.0]
                assert (await client.call_tool(f"{prefix}fail")).is_error
                prompt = await client.get_prompt(f"{prefix}greet", {"name": "Ada"})
                assert "Ada" in str(prompt.messages[0].content)
                said = "One of everything."
                assert client.instructions == (said if server else f"# world\n{said}")


@pytest.mark.requirement("C-08")
@pytest.mark.parametrize("mode", MODES)
async def test_resources_templates_and_completions_are_there_for_one_server(mode: Any) -> None:
    """A uri means something only at the server that it is from."""
    async with world() as opened, opened.client(ROLE, "world", mode=mode) as client:
        assert [str(item.uri) for item in (await client.list_resources()).resources] == [
            "world://bytes",
            "world://note",
            "world://third",
        ]
        templates = (await client.list_resource_templates()).resource_templates
        assert [item.uri_template for item in templates] == ["world://item/{id}"]
        read = (await client.read_resource("world://item/7")).contents[0]
        assert isinstance(read, types.TextResourceContents)
        assert read.text == "world://item/7 version 1"
        completed = await client.complete(types.PromptReference(name="greet"), {"name": "name", "value": "a"})
        assert completed.completion.values == ["Ada", "Alan"]
        with pytest.raises(MCPError, match="Unknown resource"):
            await client.read_resource("world://nowhere")


@pytest.mark.requirement("C-05")
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_hears_when_its_own_list_changes_and_only_then(mode: Any) -> None:
    """A change of a server's tools, or of a grant; what another role gets is nobody's business."""
    async with world(["echo", "toggle", "extra"]) as opened:
        heard: list[str] = []

        async def on_message(message: Any) -> None:
            if mode == "legacy":
                heard.append(type(message).__name__)

        async with (
            opened.client(ROLE, mode=mode, message_handler=on_message) as client,
            anyio.create_task_group() as tasks,
        ):

            async def listen() -> None:
                async with client.listen(tools_list_changed=True) as changes:
                    async for change in changes:
                        heard.append(type(change).__name__)

            if mode != "legacy":
                tasks.start_soon(listen)
            await until(lambda: opened.endpoint.streams == 1, what="the stream")
            await client.call_tool("mcp_world_toggle")
            await until(lambda: len(heard) == 1, what="the server's change")
            names = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
            assert "mcp_world_extra" in names
            await opened.door.change_grant(ADMIN, role="other", server="world", tool="add", enabled=True)
            await opened.door.change_grant(ADMIN, role=ROLE, server="world", tool="add", enabled=True)
            await until(lambda: len(heard) == 2, what="the grant")
            names = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
            assert "mcp_world_add" in names
            tasks.cancel_scope.cancel()
        assert len(heard) == 2


@pytest.mark.requirement("C-08")
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_hears_of_the_resource_it_subscribed_to(mode: Any) -> None:
    """And of no other."""
    async with world() as opened:
        heard: list[str] = []

        async def on_message(message: Any) -> None:
            if mode == "legacy" and isinstance(message, types.ResourceUpdatedNotification):
                heard.append(str(message.params.uri))

        async with (
            opened.client(ROLE, "world", mode=mode, message_handler=on_message) as client,
            anyio.create_task_group() as tasks,
        ):

            async def listen() -> None:
                async with client.listen(resource_subscriptions=["world://note"]) as changes:
                    async for change in changes:
                        heard.append(getattr(change, "uri", "?"))

            if mode == "legacy":
                await client.subscribe_resource("world://note")
            else:
                tasks.start_soon(listen)
            await until(lambda: opened.endpoint.streams == 1, what="the stream")

            async def touched() -> bool:
                await client.call_tool("touch", {"uri": "world://third"})
                await client.call_tool("touch", {"uri": "world://note"})
                return bool(heard)

            await until(touched, what="the update")
            tasks.cancel_scope.cancel()
        assert set(heard) == {"world://note"}


@pytest.mark.requirement("G-08")
@pytest.mark.parametrize("mode", MODES)
async def test_a_call_that_its_client_gives_up_is_cancelled_at_the_server(mode: Any) -> None:
    """Work that nobody waits for is stopped where it is done, and is on record as cancelled."""
    async with world() as opened, opened.client(ROLE, "world", mode=mode) as client:
        token = f"gone-{mode}"
        with anyio.move_on_after(30) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "slow", {"seconds": 60, "token": token})

                async def started() -> bool:
                    seen = (await client.call_tool("witness")).structured_content or {}
                    return token in seen["started"]

                await until(started, what="the call")
                tasks.cancel_scope.cancel()
        assert not scope.cancelled_caught

        async def cancelled() -> bool:
            seen = (await client.call_tool("witness")).structured_content or {}
            return token in seen["cancelled"]

        await until(cancelled, what="the cancelling")


@pytest.mark.requirement("G-05", "G-08", "H-06")
@pytest.mark.parametrize(
    "options", [(), ("--legacy-only",)], ids=["server-of-both-eras", "server-of-the-handshake-era"]
)
@pytest.mark.parametrize("mode", MODES)
async def test_a_server_asks_the_client_that_called(mode: Any, options: tuple[str, ...]) -> None:
    """Whatever the era of either: questions go to the one whose call it is; without the capability to nobody."""

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"colour": "blue"})

    async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="42"), model="m")

    async with world(None, *options) as opened:
        async with opened.client(
            ROLE, "world", mode=mode, elicitation_callback=elicit, sampling_callback=sample
        ) as client:
            assert "'colour': 'blue'" in str((await client.call_tool("ask")).content[0])
            assert "the model says 42" in str((await client.call_tool("think")).content[0])
        if mode == "legacy" or options:
            async with opened.client(ROLE, "world", mode=mode) as client:
                assert "decline" in str((await client.call_tool("ask")).content[0])


@pytest.mark.requirement("G-06")
@pytest.mark.parametrize("mode", MODES)
async def test_log_messages_reach_the_caller_from_the_level_on_that_it_wants(mode: Any) -> None:
    """A client that asked for warnings is not told everything."""
    heard: list[str] = []

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params.level)

    async with world() as opened:
        wanted = {} if mode == "legacy" else {"log_level": "error"}
        async with opened.client(ROLE, "world", mode=mode, logging_callback=on_log, **wanted) as client:
            if mode == "legacy":
                await client.set_logging_level("error")
            await client.call_tool("log")
            await until(lambda: len(heard) == 4, what="the messages")
    assert heard == ["error", "critical", "alert", "emergency"]
