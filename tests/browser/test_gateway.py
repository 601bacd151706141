"""A gateway as people start it, watched and changed in a browser while other people's MCP clients are connected."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from playwright.async_api import BrowserContext, Page, expect

from tests.fixtures.gateway import ROLE, GatewayProcess, settings_of
from tests.fixtures.gateway import gateway as gateway_process
from tests.fixtures.running import running, until

pytestmark = [pytest.mark.anyio, pytest.mark.deadline(120)]

MODES = ("legacy", "auto")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[GatewayProcess]:
    """`squidbot gateway` with a server that has one of everything."""
    with running("stdio") as world, gateway_process(tmp_path, settings_of({"world": world})) as opened:
        yield opened


@pytest.fixture
async def admin(context: BrowserContext, process: GatewayProcess) -> Page:
    """A page of an admin's who has signed in by hand."""
    page = await context.new_page()
    await page.goto(f"{process.url}/sign-in")
    await page.get_by_label("Token").fill(process.admin)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name="Overview").wait_for()
    return page


@asynccontextmanager
async def connected(process: GatewayProcess, mode: Any, heard: list[str]) -> AsyncIterator[Client]:
    """The SDK's client in the role of the tests, whose stream is open; `heard` gets what comes by it."""
    opened = anyio.Event()

    async def on_response(response: httpx2.Response) -> None:
        if response.request.method == "GET" and response.status_code == 200:
            opened.set()

    async def on_message(message: Any) -> None:
        if mode == "legacy":
            heard.append(type(message).__name__)

    async def listen(client: Client) -> None:
        async with client.listen(tools_list_changed=True) as changes:
            opened.set()
            async for change in changes:
                heard.append(type(change).__name__)

    # What a server brings with it when it starts changes the lists, too; that is over before anybody listens.
    await until(lambda: process.api("GET", "/servers/world")["state"] == "ready", what="the server")
    headers = {"Authorization": f"Bearer {process.token()}"}
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=60, trust_env=False, event_hooks={"response": [on_response]}
        ) as http,
        Client(
            streamable_http_client(f"{process.url}/mcp", http_client=http), mode=mode, message_handler=on_message
        ) as client,
        anyio.create_task_group() as tasks,
    ):
        if mode != "legacy":
            tasks.start_soon(listen, client)
        with anyio.fail_after(30):
            await opened.wait()
        yield client
        tasks.cancel_scope.cancel()


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}


@pytest.mark.requirement("E-04", "G-04", "C-05")
@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_is_connected_loses_and_regains_a_tool_by_a_click(
    admin: Page, process: GatewayProcess, mode: str
) -> None:
    """From the grid in a browser to another program's list of tools and its next call, with no restart between."""
    heard: list[str] = []
    async with connected(process, mode, heard) as client:
        assert "mcp_world_echo" in await names(client)
        await admin.goto(f"{process.url}/roles?server=world")
        cell = admin.locator(f"a[title^='{ROLE}, echo:']")
        await expect(cell).to_have_text("allowed")
        await cell.click()
        await admin.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        await expect(cell).to_have_text("refused, changed while running")
        await until(lambda: len(heard) == 1, what="the word that the list has changed")
        left = await names(client)
        assert "mcp_world_echo" not in left
        assert "mcp_world_add" in left
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("mcp_world_echo", {"text": "hi"})
        [refused] = process.api("GET", "/calls?outcome=refused")["records"]
        assert (refused["role"], refused["server"], refused["tool"]) == (ROLE, "world", "echo")
        await cell.click()
        await admin.get_by_role("dialog").get_by_role("button", name="Grant").click()
        await expect(cell).to_have_text("allowed, changed while running")
        await until(lambda: len(heard) == 2, what="the word that the list has changed back")
        assert await names(client) == left | {"mcp_world_echo"}
        assert not (await client.call_tool("mcp_world_echo", {"text": "hi"})).is_error
    assert heard == ["ToolListChangedNotification" if mode == "legacy" else "ToolsListChanged"] * 2


@pytest.mark.requirement("G-08", "G-04")
@pytest.mark.parametrize("mode", MODES)
async def test_a_long_call_is_followed_in_the_browser_and_by_its_caller(
    admin: Page, process: GatewayProcess, tmp_path: Path, mode: str
) -> None:
    """A call that takes minutes must not look like one that hangs, neither to the caller nor to who watches."""
    gate, told = tmp_path / "gate", list[tuple[float, float | None, str | None]]()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    await admin.goto(f"{process.url}/calls")
    await expect(admin.locator("[data-live-state]")).to_have_text("live")
    async with connected(process, mode, []) as client, anyio.create_task_group() as tasks:

        async def long_call() -> None:
            arguments = {"steps": 4, "gate": str(gate)}
            result = await client.call_tool("mcp_world_progress", arguments, progress_callback=on_progress)
            assert not result.is_error

        tasks.start_soon(long_call)
        row = admin.locator("[data-call-rows] tr", has_text="world/progress")
        await expect(row).to_contain_text("under way")
        await until(lambda: len(told) == 2, what="the caller's progress")
        # The server may have reported both steps within a tenth of a second, of which the page shows one.
        await expect(row.locator("progress")).to_have_attribute("max", "4")
        assert await row.locator("progress").evaluate("bar => bar.value") in (1, 2)
        await expect(row).to_contain_text("step ")
        record = await row.get_attribute("data-record")
        gate.touch()
        await expect(row.locator("progress")).to_have_count(0)
        await expect(row).to_contain_text("ok")
        assert await row.get_attribute("data-record") == record
    assert told == [(step, 4, f"step {step}") for step in (1, 2, 3, 4)]
