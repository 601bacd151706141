"""One timer for all deadlines of a connection, which must be as exact as one for each."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from squidbot.adapters.mcp.deadlines import Deadline, Deadlines

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("B-14")]


async def forever(_deadline: Deadline) -> None:
    await asyncio.sleep(30)


async def within(deadlines: Deadlines, seconds: float | None, work: Callable[[Deadline], Awaitable[object]]) -> float:
    """The seconds that the work took. Raises TimeoutError, and whatever the work does."""
    began = asyncio.get_running_loop().time()
    with deadlines.within(seconds) as deadline:
        await work(deadline)
    return asyncio.get_running_loop().time() - began


async def cut_off(deadlines: Deadlines, seconds: float | None, work: Callable[[Deadline], Awaitable[object]]) -> float:
    """The seconds after which the work was cut off, as it must be."""
    began = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        await within(deadlines, seconds, work)
    return asyncio.get_running_loop().time() - began


async def test_whoever_is_late_is_cut_off_each_at_their_own_time() -> None:
    deadlines = Deadlines()

    async def quick(_deadline: Deadline) -> None:
        await asyncio.sleep(0.2)

    waits = (0.4, 0.1, 0.25, -1.0)
    late = asyncio.gather(*(cut_off(deadlines, wait, forever) for wait in waits))
    in_time = asyncio.gather(*(within(deadlines, wait, quick) for wait in (5.0, None)))
    for wait, taken in zip(waits, await late, strict=True):
        assert max(wait, 0.0) <= taken < 5
    assert min(await in_time) >= 0.2


async def test_a_deadline_that_is_moved_counts_from_where_it_was() -> None:
    async def later(deadline: Deadline) -> None:
        deadline.move(0.3)
        await forever(deadline)

    async def sooner(deadline: Deadline) -> None:
        deadline.move(-19.9)
        await forever(deadline)

    assert await cut_off(Deadlines(), 0.1, later) >= 0.4
    assert await cut_off(Deadlines(), 20, sooner) < 10


async def test_one_that_is_past_is_not_moved_and_one_that_was_met_cuts_nobody_off() -> None:
    deadlines = Deadlines()
    with deadlines.within(0.05) as met:
        pass
    met.move(-1)
    await asyncio.sleep(0.1)
    assert not met.is_past
    moved: list[bool] = []

    async def too_late(deadline: Deadline) -> None:
        try:
            await forever(deadline)
        finally:
            before = deadline.when
            deadline.move(30)
            moved.append(deadline.when != before)

    await cut_off(deadlines, 0, too_late)
    assert moved == [False]


async def test_a_cancellation_from_elsewhere_stays_one() -> None:
    """A caller who gives up must not look like a server that is slow."""
    task = asyncio.ensure_future(within(Deadlines(), 5, forever))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_work_is_not_hidden_by_a_deadline() -> None:
    async def fails(deadline: Deadline) -> None:
        try:
            await forever(deadline)
        except asyncio.CancelledError:
            raise KeyError("the work's own") from None

    with pytest.raises(KeyError):
        await within(Deadlines(), 0.01, fails)
