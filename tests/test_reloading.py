"""Other settings are taken up while everything runs, or refused whole."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from squidbot import AgentMCPService, MCPClient
from squidbot.config.load import load_settings
from squidbot.container import Container
from squidbot.core.domain.audit import RecordFilter, ToolExecution
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import RateLimited, ToolNotPermitted
from tests.fixtures.running import plain_entry, until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-10")]

DEV = Caller("dev", origin="mcp")


class Place:
    """A settings file, and all that runs by it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "squidbot.json"
        self.container = Container(settings_file=self.file, converses=True)

    def write(self, servers: dict[str, Any], *, tools: Any = "*", **more: Any) -> None:
        document = {
            "tools": {"mcp_servers": servers},
            "roles": {"dev": {"tools": {name: [tools] for name in servers}}},
            **more,
        }
        self.file.write_text(json.dumps(document), encoding="utf-8")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AgentMCPService]:
        async with self.container.service() as door:
            await self.client.start_all()
            await self.ready(*self.client.server_names())
            self.container.reloader()
            yield door

    @property
    def client(self) -> MCPClient:
        return self.container.client()

    async def ready(self, *names: str) -> None:
        await until(lambda: all(self.client.status(name).state == "ready" for name in names), what=f"{names}")

    async def records(self) -> list[ToolExecution]:
        wanted = RecordFilter(kind="settings")
        return [record async for record in self.container.store().records(wanted)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("SQUIDBOT_HOME", str(tmp_path / "state"))
    return Place(tmp_path)


async def call(door: AgentMCPService, server: str, tool: str = "pid", **arguments: Any) -> str:
    return (await door.execute_tool(DEV, server, tool, arguments)).text


async def test_servers_roles_and_limits_change_while_clients_stay(place: Place) -> None:
    """One file, one change of it, and everything that it says holds, without anybody being cut off."""
    place.write({"stays": plain_entry(), "goes": plain_entry()})
    async with place.open() as door:
        before = await call(door, "stays")
        limit = {"role": "dev", "tool": "echo", "rate": "1/m", "burst": 1}
        place.write({"stays": plain_entry(), "comes": plain_entry()}, limits=[limit])
        with door.hub.listen(["settings", "grants"]) as heard:
            assert await place.container.reload()
            grants, settings = heard.receive_nowait(), heard.receive_nowait()
        await place.ready("comes")
        assert await call(door, "stays") == before
        assert await call(door, "comes")
        assert door.get_available_tools(DEV) == {"stays": ["echo", "pid"], "comes": ["echo", "pid"]}
        with pytest.raises(ToolNotPermitted):
            await call(door, "goes")
        assert await call(door, "stays", "echo", text="once") == "once"
        with pytest.raises(RateLimited):
            await call(door, "stays", "echo", text="twice")
        (record,) = await place.records()
    assert grants.topic == "grants"
    assert settings.data["ok"]
    assert (settings.data["added"], settings.data["removed"]) == (("comes",), ("goes",))
    assert (record.outcome, record.origin, record.tool) == ("ok", "system", "settings")
    assert json.loads(record.result or "")["added"] == ["comes"]


async def test_a_broken_file_is_refused_with_its_report_and_the_old_settings_stay(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A slip of the hand at night must not end what works."""
    place.write({"stays": plain_entry()})
    async with place.open() as door:
        before = await call(door, "stays")
        place.write({"stays": {**plain_entry(), "tiemout": 3}})
        with door.hub.listen(["settings"]) as heard, caplog.at_level(logging.WARNING, "squidbot.settings"):
            assert not await place.container.reload()
            happening = heard.receive_nowait()
        assert await call(door, "stays") == before
        (record,) = await place.records()
    assert not happening.data["ok"]
    assert "tiemout" in happening.data["report"]
    assert "Did you mean 'timeout'?" in happening.data["report"]
    assert (record.outcome, record.success) == ("refused", False)
    assert "tiemout" in (record.error_message or "")
    assert "The settings stay as they were" in caplog.text


async def test_a_role_that_lost_a_tool_has_lost_it_for_connected_clients_too(place: Place) -> None:
    """A grant that was taken away must not live on in what runs."""
    place.write({"world": plain_entry()})
    async with place.open() as door:
        assert await call(door, "world")
        place.write({"world": plain_entry()}, tools="echo")
        assert await place.container.reload()
        assert door.get_available_tools(DEV) == {"world": ["echo"]}
        with pytest.raises(ToolNotPermitted):
            await call(door, "world")


async def test_what_needs_a_new_start_is_named(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody should believe that a port has changed which has not."""
    place.write({"world": plain_entry()})
    async with place.open() as door:
        place.write({"world": plain_entry()}, gateway={"port": 9999}, redis="redis://:hunter22@127.0.0.1:1/0")
        with door.hub.listen(["settings"]) as heard, caplog.at_level(logging.WARNING, "squidbot.settings"):
            assert await place.container.reload()
            happening = heard.receive_nowait()
    assert happening.data["restart"] == ["gateway.port", "redis"]
    assert "gateway.port, redis" in caplog.text
    assert "hunter22" not in caplog.text


async def test_secrets_of_old_and_new_settings_are_both_kept_out(place: Place) -> None:
    """A token that was replaced may still be good, and may still be in a server's memory."""
    place.write({"world": {**plain_entry(), "env": {"API_TOKEN": "first-s3cret"}}})
    async with place.open() as door:
        place.write({"world": {**plain_entry(), "env": {"API_TOKEN": "second-s3cret"}}})
        assert await place.container.reload()
        await place.ready("world")
        said = await call(door, "world", "echo", text="first-s3cret and second-s3cret")
    assert "s3cret" not in said


async def test_a_tool_that_the_new_settings_call_read_only_is_one(place: Place) -> None:
    """What counts as changing nothing is decided by the settings that hold now."""
    place.write({"world": plain_entry()})
    async with place.open() as door:
        before = await call(door, "world")
        place.write({"world": {**plain_entry(), "read_only": ["echo"]}})
        assert await place.container.reload()
        assert place.client.connection("world").config.read_only == ["echo"]
        assert await call(door, "world") == before


async def test_two_changes_at_once_are_taken_up_one_after_the_other(place: Place) -> None:
    """The last one holds, and no server is left over from a change that was overtaken."""
    place.write({"world": plain_entry()})
    async with place.open():
        reloader = place.container.reloader()
        place.write({"first": plain_entry()})
        first = load_settings(place.file)
        place.write({"second": plain_entry()})
        second = load_settings(place.file)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reloader.apply, first)
            tasks.start_soon(reloader.apply, second)
        assert place.client.server_names() in (["first"], ["second"])
        assert len(await place.records()) == 2
        assert [status.name for status in place.client.statuses()] == place.client.server_names()
