"""Schemas that freeze, crash or swamp whoever checks with them: somebody else does, and can be spared."""

import contextlib
import copy
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from squidbot.adapters.schemas import checker, process, workers
from squidbot.adapters.schemas.checker import JSONSchemaCheck
from squidbot.core.domain.errors import Problem
from tests.fixtures.running import until

pytestmark = pytest.mark.anyio

LAG = 0.5
"""Seconds that the event loop may be held, which is twice what is promised: the machine may be busy. Frozen is for ever."""

STARTS_WITH_X = {"type": "string", "pattern": "^x"}
WRONG = (Problem("", 'found "y", expected text that fits the pattern "^x"'),)

REDOS = {"properties": {"word": {"pattern": "^(a+)+$"}}}
ENDLESS_WORD = {"word": "a" * 40 + "!"}


def _doubling(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {"a0": {"type": "null"}}
    for level in range(1, levels):
        definitions[f"a{level}"] = {"anyOf": [{"$ref": f"#/$defs/a{level - 1}"}] * 2}
    return {"$defs": definitions, "$ref": f"#/$defs/a{levels - 1}"}


FREEZING: dict[str, tuple[dict[str, Any], Any]] = {
    "regular expression": (REDOS, ENDLESS_WORD),
    "expression for names": ({"patternProperties": {"^(a+)+$": {}}}, {"a" * 40 + "!": 1}),
    "alternatives that double": (_doubling(40), 1),
    "alternatives of itself": (
        {"$defs": {"n": {"anyOf": [{"items": {"$ref": "#/$defs/n"}, "minItems": 9}] * 9}}, "$ref": "#/$defs/n"},
        [[[[[[[[[]]]]]]]]],
    ),
    "comparison of all with all": ({"uniqueItems": True}, [{"a": number} for number in range(20_000)]),
}


@pytest.fixture
async def check() -> AsyncIterator[JSONSchemaCheck]:
    async with JSONSchemaCheck() as made:
        yield made


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests about right answers, also on a machine that has much else to do."""
    monkeypatch.setattr(checker, "BUDGET", 0.9)


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """What the log has said at the level of a warning or above."""
    found: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    log, listener = logging.getLogger(checker.__name__), Listener(logging.WARNING)
    log.addHandler(listener)
    yield found
    log.removeHandler(listener)


def pids(check: JSONSchemaCheck) -> list[int]:
    """The workers that wait for something to do."""
    return [worker._process.pid for worker in check._workers._idle]


def is_gone(pid: int) -> bool:
    """Whether there is no such process, not even a dead one that nobody has fetched."""
    return not Path(f"/proc/{pid}").exists()


@asynccontextmanager
async def measured_lag() -> AsyncIterator[list[float]]:
    """Collects how long the event loop was kept from a task that wants to run every few milliseconds."""
    found: list[float] = [0.0]

    async def beat() -> None:
        while True:
            before = time.perf_counter()
            await anyio.sleep(0.005)
            found.append(time.perf_counter() - before - 0.005)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        yield found
        tasks.cancel_scope.cancel()


@pytest.mark.requirement("D-05", "B-14")
@pytest.mark.parametrize("name", FREEZING)
async def test_a_schema_that_freezes_is_given_up_in_time_and_the_loop_goes_on(
    name: str, check: JSONSchemaCheck
) -> None:
    """The call is answered, its neighbours notice nothing, and no check goes on in secret."""
    schema, value = FREEZING[name]
    await check.problems(STARTS_WITH_X, "x")
    [pid] = pids(check)
    began = time.monotonic()
    async with measured_lag() as lag:
        assert await check.problems(schema, value) == ()
    assert time.monotonic() - began < 1.5
    assert max(lag) < LAG
    assert is_gone(pid)


@pytest.mark.requirement("D-05")
async def test_a_schema_that_leads_back_to_itself_ends_and_spoils_no_other_part(check: JSONSchemaCheck) -> None:
    """Recursion without end is an error of the schema's author, not ours and not the caller's."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "size": {"type": "integer"}}}
    value = {"next": {"next": {"size": "large"}}}
    assert [
        str(problem) for problem in await check.problems({"$defs": {"node": node}, "$ref": "#/$defs/node"}, value)
    ] == ['next.next.size: found "large", expected integer']
    for schema in ({"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}):
        assert await check.problems(schema, value) == ()


@pytest.mark.requirement("D-05")
async def test_after_three_times_a_schema_constrains_nothing_and_that_is_said_once(
    check: JSONSchemaCheck, warnings: list[str]
) -> None:
    """A tool loses its check, not its service, and somebody can find out why."""
    assert [str(problem) for problem in await check.problems(copy.deepcopy(REDOS), {"word": "b"})] == [
        'word: found "b", expected text that fits the pattern "^(a+)+$"'
    ]
    for _ in range(3):
        # A server that lists its tools anew, and each time the same ones, does not start afresh.
        assert await check.problems(copy.deepcopy(REDOS), ENDLESS_WORD) == ()
    [said] = warnings
    assert said == (
        "a check against the schema with the properties 'word' took more than 250 ms, "
        "or more memory than there is, for the third time; it constrains nothing from now on"
    )
    assert pids(check) == []
    assert await check.problems(copy.deepcopy(REDOS), {"word": "b"}) == ()
    assert pids(check) == []
    assert await check.problems(STARTS_WITH_X, "y") == WRONG
    assert len(warnings) == 1


@pytest.mark.requirement("D-05", "B-14")
@pytest.mark.parametrize("twins", [False, True], ids=["each its own schema", "all the same schema"])
@pytest.mark.usefixtures("patience")
async def test_fifty_checks_at_once_with_one_frozen_are_all_answered_rightly(
    check: JSONSchemaCheck, *, twins: bool
) -> None:
    """One bad server among many must not cost the others their answers, nor more than the time of one check."""
    took: list[float] = []
    frozen = {"pattern": "^(a+)+$"}
    good = [frozen if twins else {"pattern": f"^b{number}"} for number in range(49)]
    await check.problems(STARTS_WITH_X, "x")
    began = time.monotonic()

    async def ask(schema: dict[str, Any]) -> None:
        [found] = await check.problems(schema, "c")
        assert found.message.startswith('found "c", expected text that fits the pattern')
        took.append(time.monotonic() - began)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check.problems, frozen, "a" * 40 + "!")
        for schema in good:
            tasks.start_soon(ask, schema)
    assert len(took) == 49
    assert max(took) < 2 * checker.BUDGET + 2.5
    assert len(pids(check)) <= 2


@pytest.mark.usefixtures("patience")
async def test_the_first_checks_wait_for_the_first_workers_of_which_there_are_two(check: JSONSchemaCheck) -> None:
    """The start of a process is no reason to let the first results pass, nor to start one for each."""
    found: list[Any] = []

    async def ask(number: int) -> None:
        found.append(await check.problems({"pattern": "^x", "title": str(number)}, "y"))

    assert check._workers._idle == []
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(ask, number)
    assert found == [WRONG] * 20
    assert len(pids(check)) == 2


@pytest.mark.parametrize(
    "value",
    [["x" * 5_000_000], [1] * 2_500_000, [{"a": number} for number in range(300_000)]],
    ids=["one text", "many numbers", "many objects"],
)
async def test_five_megabytes_hold_up_nobody(value: list[Any], check: JSONSchemaCheck) -> None:
    """They are checked if there is time for it, and let through if not."""
    schema = {"items": {"type": ["string", "integer", "object"]}, "minItems": 5_000_000}
    for _ in range(2):
        async with measured_lag() as lag:
            assert len(await check.problems(schema, value)) <= 1
        assert max(lag) < LAG


@pytest.mark.usefixtures("patience")
async def test_a_large_value_that_can_be_checked_in_time_is(check: JSONSchemaCheck) -> None:
    """Size alone is no offence."""
    found = await check.problems({"properties": {"text": {"maxLength": 3}}}, {"text": "é" * 5_000_000})
    assert [problem.path for problem in found] == ["text"]


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"pattern": "x"}, "y" * 34_000_000, "the value takes more than 32 MB"),
        ({"pattern": "x", "enum": ["y" * 5_000_000]}, "y", "the schema takes more than 4 MB"),
        ({"pattern": "x"}, object(), "the value is nested too deeply, or not made of what JSON is made of"),
    ],
)
async def test_what_is_too_large_for_any_check_passes_unchecked_with_a_word_about_it(
    schema: dict[str, Any], value: Any, words: str, check: JSONSchemaCheck, warnings: list[str]
) -> None:
    """Bounds hold in both directions, and the call is not lost by them."""
    await check.problems(STARTS_WITH_X, "x")
    before = pids(check)
    for _ in range(2):
        assert await check.problems(schema, value) == ()
    assert warnings == [f"a value was not held against its schema: {words}"]
    assert pids(check) == before


@pytest.mark.requirement("B-14")
async def test_a_worker_has_bounds_and_knows_nothing_of_our_environment(
    check: JSONSchemaCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shares the machine with everything else, and has no use for the tokens that we were started with."""
    monkeypatch.setenv("CANARY", "canary-0123456789")
    await check.problems(STARTS_WITH_X, "x")
    [pid] = pids(check)
    limits = _proc(pid, "limits").decode().splitlines()
    assert [line.split()[3] for line in limits if line.startswith("Max address space")] == [str(512 * 1024 * 1024)]
    assert [line.split()[4] for line in limits if line.startswith("Max core file size")] == ["0"]
    assert b"canary" not in _proc(pid, "environ") + _proc(pid, "cmdline")


def _proc(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("moment", ["idle", "asked"])
async def test_a_worker_that_somebody_kills_is_replaced_and_the_answer_is_right(
    moment: str, check: JSONSchemaCheck
) -> None:
    """The machine may run short of memory and pick one of ours; that is nobody's fault."""
    await check.problems(STARTS_WITH_X, "x")
    [pid] = pids(check)
    if moment == "idle":
        os.kill(pid, signal.SIGKILL)
        assert await check.problems(STARTS_WITH_X, "y") == WRONG
    else:
        os.kill(pid, signal.SIGSTOP)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_kill_when_lent, check, pid)
            assert await check.problems(STARTS_WITH_X, "y") == WRONG
    assert is_gone(pid)
    assert all(standing.strikes == 0 for standing in check._standings._entries.values())


async def _kill_when_lent(check: JSONSchemaCheck, pid: int) -> None:
    await until(lambda: pid not in pids(check), what="the worker to be asked")
    os.kill(pid, signal.SIGKILL)


async def test_a_check_that_is_cancelled_takes_its_worker_along(check: JSONSchemaCheck) -> None:
    """Its late answer would be taken for that to the next request."""
    await check.problems(STARTS_WITH_X, "x")
    [pid] = pids(check)
    os.kill(pid, signal.SIGSTOP)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check.problems, STARTS_WITH_X, "x")
        await until(lambda: not pids(check), what="the worker to be asked")
        tasks.cancel_scope.cancel()
    assert is_gone(pid)
    assert await check.problems(STARTS_WITH_X, "y") == WRONG


async def test_an_answer_that_came_while_our_own_loop_was_late_counts(
    check: JSONSchemaCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is not to be blamed for what held up squidbot."""
    await check.problems(STARTS_WITH_X, "x")
    [pid] = pids(check)
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(checker, "BUDGET", 0.5)

    async def hold_up() -> None:
        await until(lambda: not pids(check), what="the worker to be asked")
        os.kill(pid, signal.SIGCONT)
        time.sleep(1.5)  # noqa: ASYNC251 - the very thing that must not matter

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold_up)
        assert await check.problems(STARTS_WITH_X, "y") == WRONG
    assert pids(check) == [pid]


async def test_closing_ends_all_workers_and_checking_can_begin_again(check: JSONSchemaCheck) -> None:
    """Whoever closes must find nothing left, and whoever reconnects must find a check."""
    await check.problems(STARTS_WITH_X, "x")
    [first] = pids(check)
    await check.aclose()
    await check.aclose()
    assert is_gone(first)
    assert await check.problems(STARTS_WITH_X, "y") == WRONG
    [second] = pids(check)
    async with anyio.create_task_group() as tasks:
        os.kill(second, signal.SIGSTOP)
        tasks.start_soon(check.problems, STARTS_WITH_X, "x")
        await until(lambda: not pids(check), what="the worker to be asked")
        await check.aclose()
        os.kill(second, signal.SIGCONT)
    assert is_gone(second)
    assert pids(check) == []


async def test_a_check_that_nobody_closes_leaves_no_process() -> None:
    """Programs forget; the machine should not have to remember."""
    check = JSONSchemaCheck()
    await check.problems(STARTS_WITH_X, "x")
    [pid] = pids(check)
    del check
    gc.collect()
    assert is_gone(pid)


@pytest.mark.parametrize("moment", ["idle", "frozen"])
async def test_no_worker_outlives_a_squidbot_that_was_killed(moment: str, tmp_path: Path) -> None:
    """A kill -9 runs none of our code, so that the worker has to notice by itself, even in the midst of a check."""
    script = tmp_path / "host.py"
    script.write_text(f"""
import anyio
from squidbot.adapters.schemas import checker
checker.BUDGET = 60
async def main():
    check = checker.JSONSchemaCheck()
    await check.problems({{"pattern": "a"}}, "a")
    print(check._workers._idle[0]._process.pid, flush=True)
    if {moment == "frozen"}:
        await check.problems({REDOS!r}, {ENDLESS_WORD!r})
    await anyio.sleep(60)
anyio.run(main)
""")
    with _host(script) as host:
        assert host.stdout is not None
        pid = int(await anyio.to_thread.run_sync(host.stdout.readline))
        if moment == "frozen":
            await until(lambda: _cpu_seconds(pid) > 0.5, what="the worker to be at it")
        host.kill()
    # Whoever inherits it may leave a dead one lying about; that is not ours to see to.
    await until(lambda: is_gone(pid) or _state(pid) == "Z", what="the worker to end", within=5)


def _host(script: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)


def _fields(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return ["Z", *["0"] * 20]


def _state(pid: int) -> str:
    return _fields(pid)[0]


def _cpu_seconds(pid: int) -> float:
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (None, "could not be started: No such file or directory"),
        ("#!/bin/sh\nexit 1\n", "ended before it answered"),
        ("#!/bin/sh\nexec sleep 60\n", "was not ready within 0.3 s"),
        ("#!/bin/sh\nexec yes\n", "answered more than anybody can read"),
    ],
)
async def test_without_a_worker_values_pass_unchecked_and_that_is_said_once(
    program: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    """A machine that can start no process must still serve, and must not try, and wait, at every call."""
    _pretend(program, tmp_path, monkeypatch)
    monkeypatch.setattr(workers, "_START_UP", 0.3 if "ready" in words else 10.0)
    async with JSONSchemaCheck() as check:
        assert await check.problems(STARTS_WITH_X, "y") == ()
        began = time.monotonic()
        assert await check.problems(STARTS_WITH_X, "y") == ()
        assert time.monotonic() - began < 0.3
        assert warnings == [f"a value was not held against its schema: the process that would do it {words}"]
        monkeypatch.undo()
        monkeypatch.setattr(check._workers, "_rest_until", 0.0)
        assert await check.problems(STARTS_WITH_X, "y") == WRONG


async def test_a_worker_that_dies_of_every_check_counts_against_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    """Running out of memory looks like this; once may be an accident, and is tried again."""
    _pretend("#!/bin/sh\necho >> started\nprintf '\\0\\0\\0\\0'\nhead -c 1 > /dev/null\n", tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    async with JSONSchemaCheck() as check:
        for _ in range(4):
            assert await check.problems(STARTS_WITH_X, "y") == ()
    [said] = warnings
    assert said.endswith("for the third time; it constrains nothing from now on")
    assert len((tmp_path / "started").read_bytes()) == 6


def _pretend(program: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start `program` in place of each worker."""
    python = folder / "python"
    if program is not None:
        python.write_text(program)
        python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))


async def test_a_check_that_never_comes_to_its_turn_is_given_up(
    check: JSONSchemaCheck, monkeypatch: pytest.MonkeyPatch, warnings: list[str]
) -> None:
    """No queue is worth a call's whole time."""
    monkeypatch.setattr(checker, "_PATIENCE", 0.1)
    async with check._workers._places, check._workers._places:
        assert await check.problems(STARTS_WITH_X, "y") == ()
    assert warnings == ["a value was not held against its schema: it was not its turn within 0.1 s"]


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"title": "Report", "properties": {"a": {}}}, "the schema titled 'Report'"),
        ({"properties": {"a": {}, "b": {}}}, "the schema with the properties 'a, b'"),
        ({"pattern": "x", "properties": 3}, "a schema with 'pattern, properties'"),
    ],
)
def test_a_schema_is_named_by_what_people_know_of_it(schema: dict[str, Any], name: str) -> None:
    """A warning about nobody in particular helps nobody."""
    assert checker._name(schema) == name
    assert checker._name({"title": "\x1b[2J\u202e" * 1000}).isprintable()


def test_what_is_packed_is_the_same_for_equal_schemas() -> None:
    """Their digest is what they are known by, and a server makes new objects at each listing."""
    shared = json.loads('["pattern"]')
    assert process.packed([shared, shared], 100) == process.packed(json.loads('[["pattern"], ["pattern"]]'), 100)
