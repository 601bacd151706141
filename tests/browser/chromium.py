"""Debian's Chromium, or whichever is on PATH, driven by Playwright and kept to this machine."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

from tests.fixtures.needs import require

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOW = "no chromium on PATH; get it with: apt-get install chromium (or put any Chromium or Chrome on PATH as 'chromium')"


def find_chromium() -> str | None:
    """Where the browser is."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser; without one the test is skipped or fails as `require` has it."""
    path = find_chromium()
    require(path, HOW)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()
