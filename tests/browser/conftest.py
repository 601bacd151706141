"""A dashboard in front of a server that has one of everything, and a browser that looks at it."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, BrowserContext, Page

from tests.browser.chromium import chromium
from tests.fixtures.running import plain_entry, running
from tests.fixtures.window import Window, settings_of, window

ROLES = {
    "backend_developer": {"tools": {"plain": ["*"], "world": ["*"]}},
    "designer": {"tools": {"plain": [{"tool": "echo", "when": {"text": ["hello*"]}}]}},
}


@pytest.fixture
async def gateway(anyio_backend: str) -> AsyncIterator[Window]:
    """A dashboard that is served, with a small server, one of everything, and one that cannot start."""
    with running("stdio") as world:
        servers = {
            "plain": plain_entry(),
            "world": world,
            "broken": {"command": "no-such-program-anywhere", "max_retries": 0},
        }
        async with window(settings_of(servers, roles=ROLES)) as opened:
            yield opened


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One loop for all tests of this folder, so that they can share a browser."""
    return "asyncio"


@pytest.fixture(scope="session")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    """A browser without a window; each test has a context of its own in it."""
    async with chromium() as opened:
        yield opened


@pytest.fixture
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    """Somebody's browser, in English and in Tokyo, whose faults are remembered."""
    opened = await browser.new_context(
        locale="en-GB", timezone_id="Asia/Tokyo", color_scheme="light", viewport={"width": 1280, "height": 800}
    )
    opened.set_default_timeout(60_000)
    yield opened
    await opened.close()


@pytest.fixture
async def page(context: BrowserContext, gateway: Window) -> AsyncIterator[Page]:
    """A page that an admin has signed in on; it must not complain by the end of the test."""
    opened = await context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    await opened.goto(f"{gateway.url}/sign-in")
    await opened.get_by_label("Token").fill(gateway.admin)
    await opened.get_by_role("button", name="Sign in").click()
    await opened.get_by_role("heading", name="Overview").wait_for()
    yield opened
    assert complaints == []
