"""Limits in memory: all or none, exactly once, and quick."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.adapters.limits import memory
from squidbot.adapters.limits.memory import MemoryRateLimiter
from squidbot.adapters.system.clock import SystemClock
from squidbot.core.domain.errors import RateLimited
from squidbot.core.domain.limits import BUSY_WAIT, DEFAULT_LIMIT, Limit
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import RateLimiter
from tests.fakes.door import FakeClock

pytestmark = pytest.mark.requirement("E-07")

READ, WRITE = ToolId("files", "read_file"), ToolId("files", "write_file")
UNBOUND = Limit(rate=1e9, burst=10**9, concurrency=10**9)
"""In the place of the default, for tests of other limits."""


async def passes(limiter: RateLimiter, role: str, tool: ToolId = READ) -> float:
    """0 if a call passes (and keeps its place), else the wait."""
    try:
        await limiter.acquire(role, tool)
    except RateLimited as refused:
        return refused.retry_after
    return 0.0


@pytest.mark.anyio
async def test_a_burst_passes_and_the_next_is_told_when() -> None:
    """The wait is the true one: then, and not before."""
    clock = FakeClock()
    limiter = MemoryRateLimiter([UNBOUND, Limit(rate=2.0, burst=3)], clock)
    async with limiter:
        assert [await passes(limiter, "qa") for _ in range(3)] == [0, 0, 0]
        with pytest.raises(RateLimited, match=r"role 'qa' may make 120 calls a minute and 3 at once; .* 0.5 s") as no:
            await limiter.acquire("qa", READ)
        assert no.value.retry_after == pytest.approx(0.5)
        clock.now += 0.49
        assert await passes(limiter, "qa") > 0
        clock.now += 0.01
        assert await passes(limiter, "qa") == 0


@pytest.mark.anyio
async def test_each_role_has_a_bucket_of_its_own_and_the_tools_of_a_limit_share_it() -> None:
    """One role's flood is not another's drought."""
    limiter = MemoryRateLimiter([UNBOUND, Limit(server="files", rate=1.0, burst=2)], FakeClock())
    assert [await passes(limiter, "qa", READ), await passes(limiter, "qa", WRITE)] == [0, 0]
    assert await passes(limiter, "qa", READ) > 0
    assert await passes(limiter, "dev", READ) == 0
    assert await passes(limiter, "qa", ToolId("git", "log")) == 0


@pytest.mark.anyio
async def test_the_default_limit_is_on_and_the_operator_has_none() -> None:
    """Nobody has to switch it on."""
    limiter = MemoryRateLimiter([], FakeClock())
    permits = [await limiter.acquire("qa", READ) for _ in range(DEFAULT_LIMIT.concurrency or 0)]
    assert await passes(limiter, "qa") == BUSY_WAIT
    for permit in permits:
        await permit.release()
    for _ in range(DEFAULT_LIMIT.burst - len(permits)):
        await (await limiter.acquire("qa", READ)).release()
    assert 0 < await passes(limiter, "qa") <= 1 / (DEFAULT_LIMIT.rate or 1)
    for _ in range(2000):
        await limiter.acquire("operator", READ)


@pytest.mark.anyio
async def test_the_longest_wait_of_all_refusing_limits_is_told() -> None:
    """A shorter one would send the caller into the next refusal."""
    limits = [UNBOUND, Limit(rate=1.0), Limit(tool="write_*", rate=0.1), Limit(server="files", rate=0.5)]
    limiter = MemoryRateLimiter(limits, FakeClock())
    assert await passes(limiter, "qa", WRITE) == 0
    with pytest.raises(RateLimited, match=r"6 calls a minute and 1 at once of \*/write_\*") as no:
        await limiter.acquire("qa", WRITE)
    assert no.value.retry_after == pytest.approx(10.0)


@pytest.mark.anyio
async def test_a_full_house_outweighs_a_short_wait_and_yields_to_a_long_one() -> None:
    """Whichever hinders longer is the one to name."""
    limiter = MemoryRateLimiter([UNBOUND, Limit(rate=2.0), Limit(concurrency=1)], FakeClock())
    await limiter.acquire("qa", READ)
    with pytest.raises(RateLimited, match="1 calls running"):
        await limiter.acquire("qa", READ)
    limiter = MemoryRateLimiter([UNBOUND, Limit(concurrency=1), Limit(rate=0.1)], FakeClock())
    await limiter.acquire("qa", READ)
    with pytest.raises(RateLimited, match="6 calls a minute"):
        await limiter.acquire("qa", READ)


@pytest.mark.anyio
async def test_a_place_is_given_back_once_however_often_it_is_asked() -> None:
    """A double release would make room for two."""
    limiter = MemoryRateLimiter([UNBOUND, Limit(concurrency=2)], FakeClock())
    first, _ = await limiter.acquire("qa", READ), await limiter.acquire("qa", READ)
    for _ in range(3):
        await first.release()
    assert await passes(limiter, "qa") == 0
    assert await passes(limiter, "qa") == BUSY_WAIT


@pytest.mark.anyio
async def test_cancelled_calls_leave_their_places() -> None:
    """An agent that hangs up must not lock its role out."""
    limiter = MemoryRateLimiter([UNBOUND, Limit(concurrency=50)], FakeClock())
    begun = 0

    async def call() -> None:
        nonlocal begun
        permit = await limiter.acquire("qa", READ)
        try:
            begun += 1
            await asyncio.Event().wait()
        finally:
            await permit.release()

    for _ in range(3):
        tasks = [asyncio.create_task(call()) for _ in range(50)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert begun == 150


@pytest.mark.anyio
async def test_a_thousand_callers_at_once_get_exactly_the_burst() -> None:
    """Under concurrency a count that is read and written apart lets too many through."""
    limiter = MemoryRateLimiter([UNBOUND, Limit(rate=0.001, burst=137)], SystemClock())
    waits = await asyncio.gather(*(passes(limiter, "qa") for _ in range(1000)))
    assert sum(not wait for wait in waits) == 137


@pytest.mark.anyio
async def test_which_limits_concern_a_tool_is_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that invents names for its tools must not fill our memory, nor refill a bucket."""
    monkeypatch.setattr(memory, "_MOST_MATCHES", 10)
    limiter = MemoryRateLimiter([UNBOUND, Limit(rate=0.001, burst=25)], FakeClock())
    waits = [await passes(limiter, "qa", ToolId("files", f"tool_{number}")) for number in range(100)]
    assert sum(not wait for wait in waits) == 25
    assert len(limiter._matches) <= 10


@given(
    limits=st.lists(
        st.builds(
            Limit,
            tool=st.sampled_from(["*", "a*", "b"]),
            rate=st.sampled_from([None, 0.5, 1.0, 7.0]),
            burst=st.integers(1, 4),
            concurrency=st.sampled_from([None, 1, 3]),
        ),
        max_size=4,
    ),
    steps=st.lists(
        st.tuples(st.sampled_from(["a", "ab", "b"]), st.floats(0, 1.5), st.booleans()), min_size=1, max_size=60
    ),
)
@settings(deadline=None, max_examples=150)
def test_all_limits_hold_and_a_refusal_charges_none(limits: list[Limit], steps: list[tuple[str, float, bool]]) -> None:
    """Held to a plain model that counts every call it has ever let through."""

    async def run() -> None:
        clock = FakeClock()
        limiter = MemoryRateLimiter([UNBOUND, *limits], clock)
        passed: dict[Limit, list[float]] = {limit: [] for limit in limits}
        running: Counter[Limit] = Counter()
        for name, gap, stays in steps:
            clock.now += gap
            tool = ToolId("s", name)
            mine = [limit for limit in dict.fromkeys(limits) if limit.concerns("qa", tool)]
            left = min((tokens(limit, passed[limit], clock.now) for limit in mine if limit.rate), default=1.0)
            room = all(running[limit] < limit.concurrency for limit in mine if limit.concurrency)
            try:
                permit = await limiter.acquire("qa", tool)
            except RateLimited:
                # A hundredth of a call is rounding: within it both answers are right.
                assert left < 0.995 or not room
                continue
            assert left > 0.985
            assert room
            for limit in mine:
                passed[limit].append(clock.now)
                running[limit] += 1
            if not stays:
                await permit.release()
                running.subtract(mine)

    asyncio.run(run())


def tokens(limit: Limit, passed: list[float], now: float) -> float:
    """What a bucket that began full has left, counted drop by drop."""
    left, last = float(limit.burst), 0.0
    for moment in passed:
        left = min(limit.burst, left + (moment - last) * (limit.rate or 0)) - 1
        last = moment
    return min(limit.burst, left + (now - last) * (limit.rate or 0))


@pytest.mark.anyio
@pytest.mark.requirement("G-10")
async def test_other_limits_hold_at_once_and_an_unchanged_one_counts_on() -> None:
    """A reload must not be a way to fill one's bucket."""
    clock = FakeClock()
    kept, old, new = (
        Limit(tool="read_file", rate=1.0, burst=1),
        Limit(tool="write_file", rate=1.0, burst=1),
        Limit(tool="write_file", rate=1.0, burst=2),
    )
    limiter = MemoryRateLimiter([UNBOUND, kept, old], clock)
    assert [await passes(limiter, "qa", READ), await passes(limiter, "qa", WRITE)] == [0, 0]
    limiter.replace([UNBOUND, kept, new])
    assert await passes(limiter, "qa", READ) > 0
    assert [await passes(limiter, "qa", WRITE) > 0 for _ in range(3)] == [False, False, True]


@pytest.mark.anyio
@pytest.mark.requirement("G-10")
async def test_a_call_that_runs_over_a_change_gives_its_place_back() -> None:
    """A place that is never free again would be lost until the next start."""
    one = Limit(concurrency=1)
    limiter = MemoryRateLimiter([one], FakeClock())
    permit = await limiter.acquire("qa", READ)
    limiter.replace([one, Limit(tool="write_file", rate=1.0)])
    assert await passes(limiter, "qa") == BUSY_WAIT
    await permit.release()
    assert await passes(limiter, "qa") == 0
