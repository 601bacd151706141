"""What an open page hears, and how its stream ends."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from squidbot.core.domain.happenings import Happening
from squidbot.gateway.dashboard import events
from tests.fixtures.running import until
from tests.fixtures.window import SETUP, Window

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-04")]


class Stream:
    """The events of one stream as they come; `ended` when the server has closed it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.begun = anyio.Event()
        self.ended = anyio.Event()

    async def read(self, browser: httpx2.AsyncClient) -> None:
        async with browser.stream("GET", "/events", timeout=None) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            topic = ""
            async for line in answer.aiter_lines():
                self.begun.set()
                name, _, value = line.partition(": ")
                if name == "event":
                    topic = value
                elif name == "data":
                    self.events.append((topic, json.loads(value)))
        self.ended.set()

    def topics(self) -> list[str]:
        return [topic for topic, _ in self.events]


@asynccontextmanager
async def listening(browser: httpx2.AsyncClient) -> AsyncIterator[Stream]:
    stream = Stream()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.read, browser)
        with anyio.fail_after(10):
            await stream.begun.wait()
        yield stream
        tasks.cancel_scope.cancel()


async def test_a_call_is_heard_of_as_it_ends(gateway: Window) -> None:
    """A window that has to be reloaded is a picture."""
    async with gateway.signed_in() as browser, listening(browser) as stream:
        record = await gateway.call("backend_developer", "plain", "echo", {"text": "<b>live</b>\x1b[31m"})
        await until(lambda: "call" in stream.topics(), what="the call")
        [heard] = [data for topic, data in stream.events if topic == "call"]
    assert (heard["id"], heard["outcome"], heard["label"]) == (record, "ok", "plain/echo")
    assert heard["words"] == '{"text":"<b>live</b>\\u001b[31m"}'


async def test_states_grants_alerts_settings_and_progress_are_heard_of(gateway: Window) -> None:
    """Every page that shows something hears when it is no longer so."""
    progress = {
        "record": "r1",
        "role": "x",
        "server": "plain",
        "tool": "echo",
        "progress": 1,
        "total": 3,
        "message": "a\nb",
    }
    async with gateway.signed_in() as browser, listening(browser) as stream:
        await gateway.door.change_grant(SETUP, role="qa_tester", server="plain", tool="echo", enabled=True)
        await gateway.call("qa_tester", "plain", "echo", {"text": "first"})
        gateway.hub.publish(Happening("settings", data={"ok": True}))
        gateway.hub.publish(Happening("progress", "plain", progress))
        gateway.hub.publish(Happening("relay", data={"session": "s", "message": "secret"}))
        await gateway.admission.create(SETUP, "auditor", name="new")
        word = (await browser.get("/servers")).text.partition('name="csrf" value="')[2].partition('"')[0]
        await browser.post("/servers/plain/restart", data={"csrf": word})
        expected = {"grants", "alert", "settings", "progress", "tokens", "state", "call"}
        await until(lambda: expected <= set(stream.topics()), what=f"all of {expected}")
        assert "relay" not in stream.topics()
        [heard] = [data for topic, data in stream.events if topic == "progress"]
    assert heard == {
        "id": "r1", "role": "x", "server": "plain", "tool": "echo", "progress": 1, "total": 3, "words": "a b"
    }  # fmt: skip


async def test_a_stream_ends_when_its_token_is_revoked(gateway: Window) -> None:
    """Whoever is no longer welcome hears nothing more."""
    made = await gateway.admission.create(SETUP, "auditor", name="guest")
    async with gateway.signed_in(made.token) as browser, listening(browser) as stream:
        await gateway.admission.revoke(SETUP, made.record.id)
        with anyio.fail_after(10):
            await stream.ended.wait()
        assert stream.topics()[-1] == "signed-out"


async def test_all_streams_end_when_the_gateway_does(gateway: Window) -> None:
    """A page that is left open must not keep a process from ending."""
    async with gateway.signed_in() as browser, listening(browser) as first, listening(browser) as second:
        assert gateway.dashboard.events.streams == 2
        gateway.dashboard.close()
        with anyio.fail_after(5):
            await first.ended.wait()
            await second.ended.wait()
        assert (await browser.get("/events")).status_code == 503
    await until(lambda: gateway.hub.listeners <= 1, what="the end of all listening")


async def test_a_page_that_is_closed_is_forgotten(gateway: Window) -> None:
    """Nobody listens for somebody who has left."""
    async with gateway.signed_in() as browser:
        async with listening(browser):
            assert gateway.dashboard.events.streams == 1
        await until(lambda: gateway.dashboard.events.streams == 0, what="the end of the stream")


async def test_one_page_too_many_is_asked_to_come_back(gateway: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open pages are bounded, and those that are open live on."""
    monkeypatch.setattr(events, "MOST_STREAMS", 1)
    async with gateway.signed_in() as browser, listening(browser) as stream:
        answer = await browser.get("/events")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        gateway.hub.publish(Happening("settings", data={"ok": True}))
        await until(lambda: stream.topics() == ["settings"], what="the event")
