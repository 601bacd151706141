"""Foreign text in a real browser: no script of anybody's runs, no address elsewhere is asked (T17)."""

import json
import sys
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.async_api import Browser

from squidbot.core.domain.audit import RecordFilter
from tests.fixtures.window import settings_of, window
from tests.gateway.dashboard.nasty import NASTY
from tests.gateway.dashboard.test_inert import SERVER, sendable, worked_through

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-04"), pytest.mark.deadline(180)]


async def test_no_foreign_text_runs_or_fetches_anything(browser: Browser, tmp_path: Path) -> None:
    """The parser that counts is the browser's own, with the live list and the dialog included."""
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    (tmp_path / "texts.json").write_text(json.dumps(NASTY), encoding="ascii")
    entry = {"command": sys.executable, "args": ["-I", "-S", str(tmp_path / "server.py"), str(tmp_path / "texts.json")]}
    roles = {"backend_developer": {"tools": {"nasty": ["*"]}}}
    async with window(settings_of({"nasty": entry}, roles=roles)) as gateway:
        context = await browser.new_context()
        page = await context.new_page()
        asked: list[str] = []
        faults: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: faults.append(said.text) if "Content Security Policy" in said.text else None)
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        link = await gateway.dashboard.sign_in.link(gateway.url, gateway.admin)
        assert link is not None
        await page.goto(link)
        await page.get_by_role("heading", name="Overview").wait_for()
        await page.goto(f"{gateway.url}/calls")
        await page.locator("[data-live-state]", has_text="live").wait_for()
        ids = await worked_through(gateway)
        await page.wait_for_function("count => document.querySelectorAll('[data-record]').length >= count", arg=50)
        paths = ["/calls", "/tools", "/roles", "/servers", "/alerts", "/tokens", "/"]
        paths += [f"/call?id={record}" for record in ids[:: max(len(ids) // 12, 1)]]
        paths += [f"/tool?{urlencode({'server': 'nasty', 'tool': sendable(text[:200])})}" for text in NASTY[:12]]
        for path in paths:
            assert await page.evaluate("window.hit") is None
            assert await page.evaluate("[...document.scripts].map(s => new URL(s.src).pathname.split('/')[1])") == [
                "static"
            ]
            assert await page.locator("iframe, style, base, object, embed").count() == 0
            await page.goto(gateway.url + path)
        assert {urlsplit(address).netloc for address in asked} == {urlsplit(gateway.url).netloc}
        assert faults == []
        assert [record.id async for record in gateway.store.records(RecordFilter(kind="call"))]
        await context.close()
