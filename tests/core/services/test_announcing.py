"""Everything that happens is said aloud, once, and under the right name."""

import json

import pytest

from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.servers import EventKind, ServerEvent, ServerState
from squidbot.core.services.announcing import Announcer
from squidbot.core.services.hub import Hub
from tests.fixtures.trail import end

pytestmark = pytest.mark.anyio


def said(*events: ServerEvent) -> list[Happening]:
    hub = Hub()
    announcer = Announcer(hub)
    with hub.listen() as heard:
        for event in events:
            announcer.event(event)
        return [heard.receive_nowait() for _ in range(heard.statistics().current_buffer_used)]


def moves(*states: ServerState) -> list[tuple[str, str | None]]:
    found = said(*(ServerEvent("git", "state", state=state) for state in states))
    return [(happening.topic, happening.data.get("state")) for happening in found]


@pytest.mark.requirement("C-05")
async def test_a_server_that_comes_up_or_is_ended_brings_and_takes_its_tools() -> None:
    """Clients look again when there is something to see."""
    offers = [("tools", None), ("prompts", None), ("resources", None)]
    assert moves("connecting") == [("state", "connecting")]
    assert moves("ready") == [("state", "ready"), *offers]
    assert moves("ready", "idle")[4:] == [("state", "idle"), *offers]


async def test_a_server_that_was_away_for_a_moment_does_not_make_all_clients_look_again() -> None:
    """Its tools never left; whether they are others now is told by events of their own."""
    assert moves("ready", "degraded", "ready")[4:] == [("state", "degraded"), ("state", "ready")]


@pytest.mark.requirement("C-05", "C-08")
@pytest.mark.parametrize(
    ("kind", "topic"),
    [("tools_changed", "tools"), ("prompts_changed", "prompts"), ("resources_changed", "resources")],
)
async def test_a_changed_list_is_told_with_its_server(kind: EventKind, topic: str) -> None:
    """Whoever has nothing of that server need not care."""
    assert [(item.topic, item.server) for item in said(ServerEvent("git", kind))] == [(topic, "git")]


@pytest.mark.requirement("C-08")
async def test_an_updated_resource_is_told_with_its_address() -> None:
    """Its subscribers read it again."""
    (happening,) = said(ServerEvent("git", "resource_updated", params={"uri": "a://b"}))
    assert (happening.topic, happening.server, happening.data) == ("resource_updated", "git", {"uri": "a://b"})


async def test_what_is_nobody_elses_business_is_not_told() -> None:
    """Raw notifications and exceptions are for whoever subscribed to the client itself."""
    assert said(ServerEvent("git", "notification", method="x"), ServerEvent("git", "exception")) == []


@pytest.mark.requirement("G-04")
async def test_calls_and_alerts_are_told_as_json() -> None:
    """Live pages and other gateways get what a program would read."""
    hub = Hub()
    announcer = Announcer(hub)
    with hub.listen(["call", "alert"]) as heard:
        announcer.observe(end())
        await announcer.send(Alert("a1", "2026-11-18T10:00:00Z", "burst", "qa", None, None, "too many", {"calls": 9}))
        call, alert = heard.receive_nowait(), heard.receive_nowait()
    assert (call.server, call.data["tool"], call.data["arguments"]) == ("git", "git_push", {"branch": "feature/a"})
    assert json.loads(json.dumps(alert.data))["details"] == {"calls": 9}
