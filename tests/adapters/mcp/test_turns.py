"""Whoever works without waiting lets others run."""

import asyncio
import time

import pytest

from squidbot.adapters.mcp.turns import Turns

pytestmark = pytest.mark.anyio


async def test_work_that_never_waits_lets_others_run_but_not_at_every_step() -> None:
    """A server that sends a million small things must neither hold up its neighbours nor be held up by them."""
    others = 0

    async def count() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    turns, steps, end = Turns(), 0, time.perf_counter() + 0.1
    while time.perf_counter() < end:
        steps += 1
        await turns.pause()
    counting.cancel()
    assert 1 <= others < steps
