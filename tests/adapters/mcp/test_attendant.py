"""Beside the calls, in the stateless era: one standing subscription that outlives what happens to it."""

from pathlib import Path
from typing import Any

import pytest

from squidbot.core.domain.servers import ServerEvent
from tests.adapters.mcp.processes import messages, scripted
from tests.adapters.mcp.test_session import DISCOVERED
from tests.fixtures.meeting import in_memory, meeting
from tests.fixtures.running import until
from tests.fixtures.world import build

pytestmark = pytest.mark.anyio

ENTRY = {"command": "in-memory", "protocol": "modern"}
CHANGING = {**DISCOVERED, "capabilities": {"tools": {"listChanged": True}}}


@pytest.mark.requirement("C-05")
async def test_tools_that_come_and_go_are_heard_of_by_the_subscription() -> None:
    """In this era nobody says anything unasked."""
    async with meeting(ENTRY, transports=in_memory(build())) as client:
        await client.call_tool("world", "toggle")
        await until(lambda: _has(client, "extra"), what="the new tool")
        await client.call_tool("world", "toggle")
        await until(lambda: not _has(client, "extra"), what="the tool to be gone")


def _has(client: Any, name: str) -> bool:
    return any(tool.tool == name for tool in client.get_available_tools())


@pytest.mark.requirement("C-08")
async def test_a_resource_that_is_subscribed_to_later_joins_the_subscription_and_can_leave_it() -> None:
    """The stream is opened anew with the resource in it, and no change of tools is lost meanwhile."""
    events: list[ServerEvent] = []

    def updates() -> list[str]:
        return [str(event.params["uri"]) for event in events if event.kind == "resource_updated"]

    async with meeting(ENTRY, transports=in_memory(build()), on_event=events.append) as client:
        await client.subscribe_resource("world", "world://note")

        async def heard() -> bool:
            await client.call_tool("world", "touch", {"uri": "world://note"})
            return bool(updates())

        await until(heard, what="the update")
        await client.subscribe_resource("world", "world://note", wanted=False)
        await client.call_tool("world", "toggle")
        await until(lambda: _has(client, "extra"), what="the new tool")
    assert set(updates()) == {"world://note"}


@pytest.mark.requirement("C-05")
@pytest.mark.parametrize(
    "answer",
    [
        [{"error": {"code": -32603, "message": "no subscriptions today"}}],
        [{"result": {}}],
        [{"raw": '{"jsonrpc":"2.0","id":$id}\n'}],
    ],
    ids=["refused", "ended at once", "garbled"],
)
async def test_a_server_that_offers_changes_and_cannot_be_listened_to_is_asked_again_and_serves_on(
    tmp_path: Path, answer: list[Any]
) -> None:
    """The subscription is a comfort; calls must not depend on it."""
    heard = tmp_path / "heard"
    script = {"server/discover": [{"result": CHANGING}], "subscriptions/listen": answer}
    async with meeting(scripted(script, heard, protocol="modern")) as client:
        await until(lambda: len(messages(heard, "subscriptions/listen")) >= 2, what="another attempt")
        assert (await client.call_tool("world", "act")).text == "done"
        assert client.status("world").counters["restarts"] == 0


async def test_a_subscription_that_is_never_acknowledged_is_given_up_and_tried_again(tmp_path: Path) -> None:
    """Silence has a deadline here too."""
    heard = tmp_path / "heard"
    script = {"server/discover": [{"result": CHANGING}], "subscriptions/listen": []}
    async with meeting(scripted(script, heard, protocol="modern", timeout=0.2)) as client:
        await until(lambda: len(messages(heard, "subscriptions/listen")) >= 2, what="another attempt")
        assert (await client.call_tool("world", "act")).text == "done"


async def test_a_list_that_fails_after_a_change_is_a_warning_and_the_old_list_stays(logged: list[str]) -> None:
    """Old tools that still work are better than none."""
    tools = [{"result": {"tools": [{"name": "act", "inputSchema": {}}]}}]
    script = {
        "tools/list": [tools, [{"error": {"code": -1, "message": "lost the list"}}]],
        "tools/call": [{"send": {"method": "notifications/tools/list_changed"}}, {"result": {"content": []}}],
    }
    async with meeting(scripted(script)) as client:
        await client.call_tool("world", "act")
        await until(lambda: logged, what="the warning")
        assert _has(client, "act")
    assert "listing again failed: lost the list" in logged[0]
