"""A dashboard in front of the small server and of one that cannot start, for the tests of this folder."""

from collections.abc import AsyncIterator

import pytest

from squidbot.config.schema import Settings
from tests.fixtures.running import plain_entry
from tests.fixtures.window import Window, settings_of, window

ROLES = {
    "backend_developer": {"tools": {"plain": ["*"]}},
    "designer": {"tools": {"plain": [{"tool": "echo", "when": {"text": ["hello*"]}}]}},
}


@pytest.fixture
def settings() -> Settings:
    """Two servers, one of them broken, and two roles that have something of the first."""
    broken = {"command": "no-such-program-anywhere", "max_retries": 0}
    return settings_of({"plain": plain_entry(), "broken": broken}, roles=ROLES)


@pytest.fixture
async def gateway(settings: Settings, anyio_backend: str) -> AsyncIterator[Window]:
    """A dashboard that is served."""
    async with window(settings) as opened:
        yield opened
