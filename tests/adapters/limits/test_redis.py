"""Limits that gateways share, in a real Redis: as exact as in memory, whatever happens to dates and processes."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from loguru import logger

from squidbot.adapters.limits import redis as adapter
from squidbot.adapters.limits.redis import LEASE, REST, RedisRateLimiter, this_host
from squidbot.adapters.system.clock import SystemClock
from squidbot.core.domain.errors import RateLimited
from squidbot.core.domain.limits import BUSY_WAIT, DEFAULT_LIMIT, Limit
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import Clock, RateLimiter
from tests.fakes.door import FakeClock
from tests.fixtures.redis_server import RedisServer, redis_server
from tests.fixtures.running import ROOT, until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E-07", "E-10")]

READ, WRITE = ToolId("files", "read_file"), ToolId("files", "write_file")
UNBOUND = Limit(rate=1e6, burst=10**9, concurrency=10**6)
"""In the place of the default, for tests of other limits."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def server(running: RedisServer) -> RedisServer:
    """The one of this file, as if it had just been started."""
    running.reset()
    return running


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy with other tests is no Redis that is gone."""
    monkeypatch.setattr(adapter, "DEADLINE", 30.0)


@pytest.fixture
def told() -> Iterator[list[str]]:
    """The warnings of the log."""
    lines: list[str] = []
    logger.enable("squidbot")
    handle = logger.add(lambda line: lines.append(str(line)), level="WARNING", format="{message}")
    yield lines
    logger.remove(handle)


def limiter(server: RedisServer, clock: Clock, *limits: Limit, host: str = "host:a") -> RedisRateLimiter:
    return RedisRateLimiter([UNBOUND, *limits], url=server.url, clock=clock, host=host)


def started(program: str) -> "subprocess.Popen[bytes]":
    """Another process, which runs `program`."""
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


async def passes(limits: RateLimiter, role: str = "qa", tool: ToolId = READ, *, changes: bool = True) -> float:
    """0 if a call passes (and keeps its place), else the wait."""
    try:
        await limits.acquire(role, tool, changes=changes)
    except RateLimited as refused:
        return refused.retry_after
    return 0.0


async def test_a_burst_passes_and_the_next_is_told_when(server: RedisServer) -> None:
    """The wait is the true one: then, and not before."""
    clock = FakeClock()
    async with limiter(server, clock, Limit(rate=2.0, burst=3)) as shared:
        assert [await passes(shared) for _ in range(3)] == [0, 0, 0]
        with pytest.raises(RateLimited, match=r"role 'qa' may make 120 calls a minute and 3 at once; .* 0.5 s") as no:
            await shared.acquire("qa", READ)
        assert no.value.retry_after == pytest.approx(0.5)
        clock.now += 0.49
        assert await passes(shared) > 0
        clock.now += 0.01
        assert await passes(shared) == 0


async def test_no_limit_is_charged_when_one_refuses(server: RedisServer) -> None:
    """A refused call must not use up what the next one needs."""
    limits = (Limit(server="files", rate=0.01, burst=3), Limit(tool="write_*", rate=0.01, burst=1))
    async with limiter(server, FakeClock(), *limits) as shared:
        assert await passes(shared, tool=WRITE) == 0
        assert [await passes(shared, tool=WRITE) > 0 for _ in range(5)] == [True] * 5
        assert [await passes(shared, tool=READ) == 0 for _ in range(3)] == [True, True, False]
        assert await passes(shared, role="dev", tool=WRITE) == 0


async def test_gateways_count_together(server: RedisServer) -> None:
    """Two doors to one house do not make two houses."""
    clock = FakeClock()
    limit = Limit(rate=0.001, burst=10, concurrency=7)
    async with limiter(server, clock, limit) as one, limiter(server, clock, limit) as two:
        permits = [await (one, two)[number % 2].acquire("qa", READ) for number in range(7)]
        assert [await passes(one), await passes(two)] == [BUSY_WAIT, BUSY_WAIT]
        for permit in permits:
            await permit.release()
            await permit.release()
        assert [await passes(two) == 0 for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_step_of_an_hour_changes_nothing(server: RedisServer, hours: int) -> None:
    """Whoever can set the date must not be able to empty or to fill a bucket."""
    clock = FakeClock()
    async with limiter(server, clock, Limit(rate=0.1, burst=2)) as shared:
        assert [await passes(shared) for _ in range(2)] == [0, 0]
        with server.client() as client:
            before = client.time()[0]
            server.step(hours * 3600)
            assert abs(client.time()[0] - before - hours * 3600) < 60
        assert await passes(shared) == pytest.approx(10.0)
        clock.now += 10.0
        assert await passes(shared) == 0
        assert await passes(shared) == pytest.approx(10.0)


async def test_hosts_whose_clocks_began_at_different_times_share_one(server: RedisServer) -> None:
    """Monotonic clocks count from each machine's own start."""
    old, young = FakeClock(), FakeClock()
    old.now, young.now = 9e6, 3.0
    limit = Limit(rate=0.1, burst=1)
    async with limiter(server, old, limit) as one, limiter(server, young, limit, host="host:b") as two:
        assert await passes(one) == 0
        assert await passes(two) == pytest.approx(10.0)
        for _ in range(3):
            old.now, young.now = old.now + 5.0, young.now + 5.0
            assert await passes(two) == pytest.approx(5.0)
            old.now, young.now = old.now + 5.0, young.now + 5.0
            assert await passes(one) == 0


async def test_time_goes_on_with_any_host_that_is_left(server: RedisServer) -> None:
    """A host that came late, when nobody had called for an hour, must not wait for that hour again."""
    first, late = FakeClock(), FakeClock()
    late.now = 50.0
    limit = Limit(rate=0.1, burst=1)
    async with limiter(server, first, limit) as one:
        assert await passes(one) == 0
        first.now += 3600.0
        async with limiter(server, late, limit, host="host:b") as two:
            assert await passes(two) > 0
            assert await passes(one) == 0
            assert await passes(two) == pytest.approx(10.0)
            late.now += 10.0
            assert await passes(two) == 0


async def test_short_commands_of_one_host_share_its_time(server: RedisServer) -> None:
    """Each makes one call and ends; together they are no slower than one that stays."""
    clock = FakeClock()

    async def command() -> float:
        async with limiter(server, clock, Limit(rate=0.1, burst=1)) as shared:
            return await passes(shared)

    assert [await command(), await command()] == [0, pytest.approx(10.0)]
    clock.now += 10.0
    assert await command() == 0
    clock.now += 9.0
    assert await command() == pytest.approx(1.0)


async def test_slow_questions_do_not_make_time_run(server: RedisServer) -> None:
    """If the shared time gained by every question that overtakes another, a busy day would void every limit."""
    clocks = [FakeClock(), FakeClock()]
    limit = Limit(rate=0.1, burst=1)
    passed: list[bool] = []

    async def overtake(other: RedisRateLimiter) -> None:
        """Three seconds pass on the way to Redis, and somebody else is faster."""
        for clock in clocks:
            clock.now += 3.0
        passed.append(await passes(other) == 0)

    async with limiter(server, clocks[0], limit) as one, limiter(server, clocks[1], limit, host="host:b") as two:
        for slow, fast in [(one, two), (two, one)] * 30:
            sent = slow._sent

            async def late(freed: Any, questions: Any, sent: Any = sent, fast: RedisRateLimiter = fast) -> Any:
                await overtake(fast)
                return await sent(freed, questions)

            slow._sent = late  # type: ignore[method-assign]
            passed.append(await passes(slow) == 0)
            slow._sent = sent  # type: ignore[method-assign]
            passed.append(await passes(slow) == 0)
    assert 10 < sum(passed) <= 1 + 0.1 * 3.0 * 60


async def test_places_of_a_killed_gateway_are_free_again_after_its_lease(server: RedisServer) -> None:
    """Nobody gives them back; nobody may wait for them for ever."""
    clock = FakeClock()
    async with limiter(server, clock, Limit(concurrency=2)) as other:
        program = f"""
import asyncio
from squidbot.adapters.system.clock import SystemClock
from squidbot.core.domain.tools import ToolId
from tests.adapters.limits.test_redis import UNBOUND, Limit, RedisRateLimiter
async def main():
    limits = [UNBOUND, Limit(concurrency=2)]
    async with RedisRateLimiter(limits, url={server.url!r}, clock=SystemClock(), host="host:killed") as own:
        for _ in range(2):
            await own.acquire("qa", ToolId("files", "read_file"))
        print("held", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""
        with started(program) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            assert await passes(other) == BUSY_WAIT
            holder.send_signal(signal.SIGKILL)
        assert await passes(other) == BUSY_WAIT
        clock.now += 2 * LEASE
        assert [await passes(other) for _ in range(3)] == [0, 0, BUSY_WAIT]


async def test_a_place_is_kept_for_as_long_as_the_call_runs(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that takes longer than a lease still has its place."""
    monkeypatch.setattr(adapter, "_RENEWAL", 0.01)
    clock = FakeClock()
    async with limiter(server, clock, Limit(concurrency=1)) as shared, limiter(server, clock) as bystander:
        permit = await shared.acquire("qa", READ)
        with server.client() as client:
            (key,) = [key for key in client.keys("*places*") if client.zcard(key)][:1]

            def ends() -> float:
                return min(float(score) for _, score in client.zrange(key, 0, -1, withscores=True))

            for _ in range(4):
                clock.now += 0.9 * LEASE
                before = ends()
                await until(lambda before=before: ends() > before, what="the lease to be renewed")  # type: ignore[misc]
                assert await passes(bystander, role="dev") == 0
                assert await passes(shared) == BUSY_WAIT
            await permit.release()
        assert await passes(shared) == 0


async def test_a_cancelled_call_leaves_its_place(server: RedisServer) -> None:
    """Also if it is cancelled while Redis is being asked."""
    async with limiter(server, FakeClock(), Limit(concurrency=20)) as shared:
        for _ in range(5):
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(passes, shared)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                tasks.cancel_scope.cancel()
            for lease in tuple(shared._held):
                shared.give_back(lease)
        with server.client() as client:

            def empty() -> bool:
                return not any(client.zcard(key) for key in client.keys("*places*"))

            await until(empty, what="all places to be free")


async def test_leaving_gives_back_what_is_still_held(server: RedisServer) -> None:
    """A gateway that stops does not leave its places to lapse."""
    async with limiter(server, FakeClock(), Limit(concurrency=1)) as shared:
        assert await passes(shared) == 0
    async with limiter(server, FakeClock(), Limit(concurrency=1)) as shared:
        assert await passes(shared) == 0


async def test_an_error_of_the_caller_comes_out_as_it_is(server: RedisServer) -> None:
    """Not wrapped in a group of the limiter's own task."""
    with pytest.raises(KeyError):
        async with limiter(server, FakeClock()):
            raise KeyError("mine")


async def test_all_keys_expire_and_not_before_they_are_worthless(server: RedisServer) -> None:
    """A Redis that fills up with roles of last year is one more thing to clean; one that forgets early is no limit."""
    async with limiter(server, FakeClock(), Limit(rate=1 / 86400, burst=30, concurrency=3)) as shared:
        assert await passes(shared) == 0
        with server.client() as client:
            lives = {key: client.ttl(key) for key in client.keys("*")}
            assert all(life >= 86_000 for life in lives.values())
            assert max(life for key, life in lives.items() if b":rate:" in key) >= 30 * 86400


async def test_without_redis_only_what_changes_nothing_passes(server: RedisServer, told: list[str]) -> None:
    """A lost counter is no free pass; and it says so once, not with every call."""
    clock = FakeClock()
    async with limiter(server, clock, Limit(rate=1.0, burst=100)) as shared:
        assert await passes(shared) == 0
        server.stop()
        for _ in range(5):
            with pytest.raises(RateLimited, match="cannot be counted") as no:
                await shared.acquire("qa", WRITE)
            assert no.value.retry_after == REST
            assert "127.0.0.1" not in str(no.value)
            await (await shared.acquire("qa", READ, changes=False)).release()
            clock.now += REST
        assert len(told) == 1
        clock.now += 60.0
        assert await passes(shared) > 0
        assert len(told) == 2
        server.start()
        clock.now += REST
        assert await passes(shared) == 0
        assert "answers again" in told[-1]


@pytest.mark.parametrize(("on_failure", "writes", "reads"), [("open", 0.0, 0.0), ("closed", REST, REST)])
async def test_a_limit_may_say_what_becomes_of_calls_without_redis(
    server: RedisServer, on_failure: str, writes: float, reads: float
) -> None:
    """Some would rather stop, some would rather go on."""
    server.stop()
    every = Limit(rate=1e6, burst=10**6, concurrency=9, on_failure=on_failure)  # type: ignore[arg-type]
    shared = RedisRateLimiter([every], url=server.url, clock=FakeClock())
    async with shared:
        assert [await passes(shared, changes=True), await passes(shared, changes=False)] == [writes, reads]


async def test_a_redis_that_hangs_hangs_nobody(
    server: RedisServer, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred callers wait for one deadline at the most, not one after the other."""
    async with limiter(server, SystemClock()) as shared:
        assert await passes(shared) == 0
        monkeypatch.setattr(adapter, "DEADLINE", 0.2)
        with server.frozen(), anyio.fail_after(20):
            waits = await asyncio.gather(*(passes(shared) for _ in range(100)))
            assert set(waits) == {REST}
        monkeypatch.setattr(adapter, "DEADLINE", 30.0)
        assert "no answer in 0.2 s" in told[0]
        await until(lambda: _free(shared), what="Redis to be asked again")


async def _free(shared: RedisRateLimiter) -> bool:
    return await passes(shared) == 0


async def test_a_password_of_redis_is_not_told(tmp_path: Path, told: list[str]) -> None:
    """The url of the settings may hold one."""
    shared = RedisRateLimiter([], url="redis://:s3cr3t-canary@127.0.0.1:1/0", clock=FakeClock())
    async with shared:
        with pytest.raises(RateLimited) as no:
            await shared.acquire("qa", WRITE)
    assert "s3cr3t" not in f"{told} {no.value} {no.value.hint}"
    assert told


async def test_the_default_limit_is_on_and_the_operator_has_none(server: RedisServer) -> None:
    """Also where it is shared."""
    async with RedisRateLimiter([], url=server.url, clock=FakeClock()) as shared:
        for _ in range(DEFAULT_LIMIT.concurrency or 0):
            await shared.acquire("qa", READ)
        assert await passes(shared) == BUSY_WAIT
        server.stop()
        await (await shared.acquire("operator", WRITE)).release()


async def test_names_of_tools_are_remembered_within_bounds(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that invents names must not fill our memory."""
    monkeypatch.setattr(adapter, "_MOST_MATCHES", 5)
    async with limiter(server, FakeClock()) as shared:
        for number in range(12):
            assert await passes(shared, tool=ToolId("files", f"tool_{number}")) == 0
        assert len(shared._matches) <= 5


def test_processes_of_one_machine_know_that_they_share_a_clock() -> None:
    """A name of its own for each would make them strangers."""
    program = "from squidbot.adapters.limits.redis import this_host; print(this_host())"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == this_host() != ""


async def test_three_processes_and_a_thousand_callers_get_exactly_the_burst(server: RedisServer) -> None:
    """Exact means exact: not one more, not one less, whoever comes first."""
    program = f"""
import asyncio, json
from squidbot.adapters.system.clock import SystemClock
from tests.adapters.limits.test_redis import UNBOUND, Limit, RedisRateLimiter, adapter, passes
adapter.DEADLINE = 30.0
async def main():
    limits = [UNBOUND, Limit(rate=0.0001, burst=137)]
    async with RedisRateLimiter(limits, url={server.url!r}, clock=SystemClock()) as shared:
        print(json.dumps(await asyncio.gather(*(passes(shared) for _ in range(334)))))
asyncio.run(main())
"""
    processes = [started(program) for _ in range(3)]
    outputs = [process.communicate(timeout=50) for process in processes]
    waits = [wait for output, errors in outputs for wait in json.loads(output or errors)]
    assert sum(wait == 0 for wait in waits) == 137


@pytest.mark.requirement("G-10")
async def test_other_limits_hold_at_once_and_an_unchanged_one_counts_on(server: RedisServer) -> None:
    """A reload must not be a way to fill one's bucket."""
    kept, old, new = (
        Limit(tool="read_file", rate=0.01, burst=1),
        Limit(tool="write_file", rate=0.01, burst=1),
        Limit(tool="write_file", rate=0.01, burst=2),
    )
    async with limiter(server, FakeClock(), kept, old) as limits:
        assert [await passes(limits), await passes(limits, tool=WRITE)] == [0, 0]
        limits.replace([UNBOUND, kept, new])
        assert await passes(limits) > 0
        assert [await passes(limits, tool=WRITE) > 0 for _ in range(3)] == [False, False, True]


async def test_calls_that_come_at_once_are_asked_about_together(server: RedisServer) -> None:
    """A question for each call would cost more than all else that is done for it."""
    async with limiter(server, FakeClock(), Limit(rate=0.001, burst=40, concurrency=100)) as shared:
        assert await passes(shared) == 0
        with server.client() as client:

            def questions() -> int:
                return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])

            before = questions()
            waits: list[float] = []

            async def call() -> None:
                waits.append(await passes(shared))

            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(call)
            assert sorted(waits)[:40] == [0.0] * 39 + [max(waits)]
            assert questions() - before <= 3


async def test_a_redis_that_forgets_the_script_is_told_it_again(server: RedisServer) -> None:
    """It was restarted, or another took its place."""
    async with limiter(server, FakeClock(), Limit(rate=0.001, burst=2)) as shared:
        assert await passes(shared) == 0
        with server.client() as client:
            client.script_flush()
        assert await passes(shared) == 0
        assert await passes(shared) > 0
