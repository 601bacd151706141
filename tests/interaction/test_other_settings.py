"""Servers that come, go and change while others stay connected."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from squidbot import MCPClient, MCPConfig, ToolResult
from squidbot.core.domain.servers import ServerChanges
from squidbot.core.services.announcing import Announcer
from squidbot.core.services.hub import Hub
from tests.fixtures.running import Entry, plain_entry, running, until

pytestmark = pytest.mark.anyio

SLOW_START = [sys.executable, "-c", "import time; time.sleep(60)"]


def config(**servers: Entry) -> MCPConfig:
    return MCPConfig.from_dict({"servers": servers})


async def pid(client: MCPClient, server: str) -> str:
    answer = await client.call_tool(server, "pid")
    assert not answer.is_error, answer.text
    return answer.text


async def ready(client: MCPClient, *names: str) -> None:
    await until(lambda: all(client.status(name).state == "ready" for name in names), what=f"{names} to be ready")


def offered(client: MCPClient) -> list[str]:
    return sorted({tool.server for tool in client.get_available_tools()})


@pytest.mark.requirement("G-10")
async def test_only_what_changed_is_started_anew() -> None:
    """Whoever works with one server must not notice that another was added, removed or changed."""
    async with MCPClient(config(stays=plain_entry(), changes=plain_entry(), goes=plain_entry())) as client:
        await client.start_all()
        await ready(client, "stays", "changes", "goes")
        before = {name: await pid(client, name) for name in ("stays", "changes")}

        changed = await client.reconfigure(
            config(comes=plain_entry(), stays=plain_entry(), changes=plain_entry("--delay", "0"))
        )
        assert changed == ServerChanges(added=("comes",), removed=("goes",), changed=("changes",))
        await ready(client, "comes", "stays", "changes")

        assert await pid(client, "stays") == before["stays"]
        assert await pid(client, "changes") != before["changes"]
        assert client.server_names() == ["comes", "stays", "changes"]
        assert offered(client) == ["changes", "comes", "stays"]
        assert (await client.call_tool("goes", "pid")).text.startswith("there is no server 'goes'")
        with pytest.raises(KeyError):
            client.status("goes")


@pytest.mark.requirement("G-10")
async def test_what_is_only_said_of_a_server_changes_without_ending_it() -> None:
    """Another time limit or another name for a tool is no reason to lose what a server has in memory."""
    async with MCPClient(config(world=plain_entry())) as client:
        assert await client.connect("world")
        before = await pid(client, "world")
        entry = {**plain_entry(), "request_timeout": 7, "overrides": {"echo": {"description": "Says it once more"}}}
        assert await client.reconfigure(config(world=entry)) == ServerChanges(adjusted=("world",))
        assert await pid(client, "world") == before
        descriptions = {tool.tool: tool.description for tool in client.get_available_tools()}
        assert descriptions["echo"] == "Says it once more"
        assert client.connection("world").config.request_timeout == 7


@pytest.mark.requirement("G-10")
async def test_a_secret_that_changed_starts_its_server_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The definition reads the same, and yet the server runs with a token that is no longer good."""
    entry = {**plain_entry(), "env": {"TOKEN": "${SQUIDBOT_TEST_TOKEN}"}}
    monkeypatch.setenv("SQUIDBOT_TEST_TOKEN", "first-token")
    async with MCPClient(config(world=entry).resolved()) as client:
        assert await client.connect("world")
        assert await client.reconfigure(config(world=entry).resolved()) == ServerChanges()
        monkeypatch.setenv("SQUIDBOT_TEST_TOKEN", "second-token")
        assert await client.reconfigure(config(world=entry).resolved()) == ServerChanges(changed=("world",))


@pytest.mark.requirement("G-10")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_call_to_a_server_that_is_removed_ends_with_that_reason(transport: Any) -> None:
    """Whoever waits is told what happened, at once, and not that something broke."""
    answers: list[ToolResult] = []
    with running(transport) as entry:
        async with MCPClient(config(world=entry)) as client, anyio.create_task_group() as tasks:
            assert await client.connect("world")

            async def call() -> None:
                answers.append(await client.call_tool("world", "slow", {"seconds": 30, "token": "removed"}))

            async def started() -> bool:
                return "removed" in (await client.call_tool("world", "witness")).structured["started"]

            tasks.start_soon(call)
            await until(started, what="the call")
            with anyio.fail_after(15):
                await client.reconfigure(config())
    (answer,) = answers
    assert answer.is_error
    assert "it was removed from the settings" in answer.text


@pytest.mark.requirement("G-10", "C-05")
async def test_everybody_hears_of_tools_that_came_and_went() -> None:
    """Clients stay connected over a reload, so somebody has to tell them to look again."""
    hub = Hub()
    async with MCPClient(config(goes=plain_entry()), on_event=Announcer(hub).event) as client:
        assert await client.connect("goes")
        with hub.listen(["tools"]) as heard:
            await client.reconfigure(config(comes=plain_entry()))
            servers: set[str | None] = set()
            with anyio.fail_after(20):
                while not {"goes", "comes"} <= servers:
                    servers.add((await heard.receive()).server)
            assert offered(client) == ["comes"]


@pytest.mark.requirement("G-10")
async def test_a_disabled_server_is_ended_and_an_enabled_one_started() -> None:
    """`enabled` in the settings is a switch that works while running."""
    async with MCPClient(config(world=plain_entry())) as client:
        assert await client.connect("world")
        await client.reconfigure(config(world={**plain_entry(), "enabled": False}))
        assert client.status("world").state == "disabled"
        assert (offered(client), client.server_names()) == ([], [])
        await client.reconfigure(config(world=plain_entry()))
        await ready(client, "world")
        assert offered(client) == ["world"]


@pytest.mark.requirement("B-07")
async def test_nobody_waits_for_a_server_that_is_slow_to_start() -> None:
    """A gateway is there at once, and each server's tools as soon as that server is."""
    hub = Hub()
    slow = {"command": SLOW_START[0], "args": SLOW_START[1:], "startup_timeout": 50}
    async with MCPClient(config(slow=slow, quick=plain_entry()), on_event=Announcer(hub).event) as client:
        with hub.listen(["tools"]) as heard, anyio.fail_after(20):
            await client.start_all()
            assert client.status("slow").state == client.status("quick").state == "connecting"
            assert (await heard.receive()).server == "quick"
        assert offered(client) == ["quick"]
        assert client.status("slow").state == "connecting"


@pytest.mark.requirement("B-07")
async def test_a_lazy_server_that_is_known_is_not_started_with_the_others(tmp_path: Path) -> None:
    """What is used once a week need not run all week."""
    servers = config(lazy={**plain_entry(), "lazy": True}, eager=plain_entry())
    async with MCPClient(servers, state=tmp_path) as client:
        await client.start_all()  # never listed before: started once to be listed
        await ready(client, "lazy", "eager")
    async with MCPClient(servers, state=tmp_path) as client:
        await client.start_all()
        await ready(client, "eager")
        assert client.status("lazy").state == "idle"
        assert offered(client) == ["eager", "lazy"]
        assert await pid(client, "lazy")
        assert client.status("lazy").state == "ready"


async def test_a_restarted_server_is_another_process_with_the_same_tools() -> None:
    """The way out for a person when a server has lost its way."""
    async with MCPClient(config(world=plain_entry())) as client:
        assert await client.connect("world")
        before = await pid(client, "world")
        assert await client.restart("world")
        assert await pid(client, "world") != before
        assert offered(client) == ["world"]
        with pytest.raises(KeyError):
            await client.restart("nobody")


def says(lines: Sequence[str]) -> Entry:
    """A server that writes `lines` to stderr, and then works."""
    plain = plain_entry()
    code = (
        "import sys, runpy; "
        f"print({chr(10).join(lines)!r}, file=sys.stderr, flush=True); "
        f"sys.argv = {plain['args'][2:]!r}; runpy.run_path({plain['args'][2]!r}, run_name='__main__')"
    )
    return {"command": sys.executable, "args": ["-c", code], "env": {"API_TOKEN": "hunter22-token"}}


@pytest.mark.requirement("G-04")
async def test_a_person_sees_the_last_lines_that_a_server_wrote_without_secrets() -> None:
    """The reason why a server misbehaves is mostly there, and so is, too often, a token."""
    lines = [f"line {number}" for number in range(200)] + ["token is hunter22-token", "\x1b[31mred\x1b[0m"]
    async with MCPClient(config(world=says(lines))) as client:
        assert await client.connect("world")
        await until(lambda: client.status("world").stderr, what="the last words")
        shown = client.status("world").stderr
    assert len(shown) == 50
    assert "line 199" in shown
    assert not any("hunter22" in line or "\x1b" in line for line in shown)
