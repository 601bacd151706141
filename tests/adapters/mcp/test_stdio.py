"""A server as a child process: started with what it is given, heard line by line, and ended with all it started."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from squidbot.adapters.mcp.channel import Bounds, ChannelClosed, Frame, Oversize
from squidbot.adapters.mcp.leftovers import fresh_mark, sweep
from squidbot.adapters.mcp.transport import Opening
from squidbot.adapters.mcp.transports import stdio
from squidbot.adapters.mcp.transports.stdio import ProcessChannel, open_stdio
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError
from tests.adapters.mcp.processes import SERVERS, alive, descriptors, noted, stubborn
from tests.fixtures.running import ROOT, plain_entry, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less time for servers that do not want to end: the order of things is what counts."""
    monkeypatch.setattr(stdio, "GRACE", 0.3)
    monkeypatch.setattr(stdio, "FIRM", 0.2)
    monkeypatch.setattr(stdio, "_EXIT_NEWS", 0.2)


ECHO = "import os, sys\nfor line in sys.stdin.buffer: os.write(1, line)"


def opened(
    command: Sequence[str], *, limit: int = 10_000_000, **entry: Any
) -> AbstractAsyncContextManager[ProcessChannel]:
    """A process under our transport."""
    config = MCPServerConfig(name="s", command=command[0], args=list(command[1:]), **entry).resolved()
    return open_stdio(config, Opening(Bounds(bytes=limit)))


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


async def lines(channel: ProcessChannel, count: int = 1) -> list[Frame]:
    """The next lines."""
    found: list[Frame] = []
    with anyio.fail_after(10):
        while len(found) < count:
            found += await channel.receive()
    return found


async def end_of(channel: ProcessChannel) -> ChannelClosed:
    """How it ends, once it does."""
    with pytest.raises(ChannelClosed) as end:
        await lines(channel, sys.maxsize)
    return end.value


# Starting


@pytest.mark.requirement("B-01", "A-08")
async def test_a_server_knows_what_its_entry_gives_it_and_little_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One server's secret is no business of another's, and ours are no business of any."""
    monkeypatch.setenv("OUR_SECRET", "not yours")
    code = "import json, os; print(json.dumps([dict(os.environ), os.getcwd()]), flush=True)"
    entry: dict[str, Any] = {"env": {"GIVEN": "yes"}, "cwd": str(tmp_path), "config": {"depth": 3}}
    async with opened(python(code), **entry) as channel:
        (line,) = await lines(channel)
    assert isinstance(line, bytes)
    environment, folder = json.loads(line)
    assert environment["GIVEN"] == "yes"
    assert json.loads(environment["MCP_CONFIG"]) == {"depth": 3}
    assert "PATH" in environment
    assert "OUR_SECRET" not in environment
    assert Path(folder).name == tmp_path.name


@pytest.mark.requirement("B-06")
@pytest.mark.parametrize(
    ("entry", "words", "reason", "hint"),
    [
        (
            {"command": "no-such-program"},
            "command 'no-such-program' was not found on PATH",
            "its command was not found on PATH",
            "Install 'no-such-program'",
        ),
        (
            {"command": "./missing"},
            "command './missing' does not exist",
            "its command does not exist",
            "Correct `command`",
        ),
        (
            {"command": "./plain-file"},
            "command './plain-file' is not executable",
            "its command is not executable",
            "chmod +x ./plain-file",
        ),
        (
            {"command": "true", "cwd": "nowhere"},
            "its folder",
            "its working folder does not exist",
            "Correct `cwd`",
        ),
    ],
)
async def test_what_cannot_be_started_says_why_and_what_to_do(
    tmp_path: Path, entry: dict[str, Any], words: str, reason: str, hint: str
) -> None:
    """The most common mistake of all deserves the best message; a model gets no path to read."""
    (tmp_path / "plain-file").touch(mode=0o644)
    entry["cwd"] = str(tmp_path / entry.get("cwd", ""))
    with pytest.raises(MCPConnectionError, match=words) as error:
        await _stay([entry.pop("command")], **entry)
    assert error.value.reason == reason
    assert hint in str(error.value.hint)
    assert error.value.permanent


async def test_a_command_is_found_beside_its_folder_and_may_be_no_program_after_all(tmp_path: Path) -> None:
    """The system's own reason is the best there is."""
    (tmp_path / "serve").write_text("no program\n")
    (tmp_path / "serve").chmod(0o755)
    async with opened(["./serve"], cwd=str(tmp_path)) as channel:
        assert str(await end_of(channel)) == "it could not be executed: Exec format error"


async def test_an_argument_list_that_the_system_refuses_is_an_error_with_its_reason() -> None:
    """Whatever keeps a process from starting ends in words."""
    with pytest.raises(MCPConnectionError, match="Argument list too long"):
        await _stay(["true", "x" * 3_000_000])


# Talking


async def test_lines_go_there_and_come_back_whole_and_in_order() -> None:
    """Also those that are larger than any pipe."""
    frames = [b"first", b"x" * 1_000_000, "größer".encode(), b"last"]
    async with opened(python(ECHO)) as channel, anyio.create_task_group() as tasks:
        tasks.start_soon(_send_all, channel, frames)
        assert await lines(channel, 4) == frames


async def _send_all(channel: ProcessChannel, frames: list[bytes]) -> None:
    for frame in frames:
        await channel.send(frame, None)


@pytest.mark.requirement("B-14")
async def test_a_line_over_the_limit_is_thrown_away_and_the_next_one_heard() -> None:
    """One huge answer must not cost the connection."""
    async with opened(python("print('x' * 5000); print('next', flush=True); input()"), limit=1_000) as channel:
        big, after = await lines(channel, 2)
    assert isinstance(big, Oversize)
    assert after == b"next"


@pytest.mark.requirement("B-01")
async def test_an_encoding_of_the_settings_holds_in_both_directions() -> None:
    """A server that reads Latin-1 must not be sent UTF-8; what it cannot spell is escaped."""
    code = "import sys\nline = sys.stdin.buffer.readline()\nsys.stdout.buffer.write(line)\nsys.stdout.flush()\ninput()"
    message = json.dumps({"t": "é €"}, ensure_ascii=False).encode()
    async with opened(python(code), encoding="latin-1") as channel:
        await channel.send(message, None)
        (line,) = await lines(channel)
    assert isinstance(line, bytes)
    assert json.loads(line.decode("latin-1")) == {"t": "é €"}


@pytest.mark.requirement("B-10")
async def test_a_server_that_does_not_read_holds_up_only_who_writes_to_it_and_leaves_nothing_open(
    impatient: None,
) -> None:
    """A full pipe must not become a leak."""
    before = descriptors()
    async with opened(python("import signal, os; os.write(1, b'ready\\n'); signal.pause()")) as channel:
        await lines(channel)
        with anyio.move_on_after(0.2) as given_up:
            for _ in range(10):
                await channel.send(b"x" * 100_000, None)
        assert given_up.cancelled_caught
        async with opened(python(ECHO)) as other:
            await other.send(b"fine", None)
            assert await lines(other) == [b"fine"]
    assert descriptors() <= before


# Ending


@pytest.mark.requirement("B-06", "B-08")
async def test_a_server_that_exits_is_noticed_with_its_code_its_last_words_and_a_hint_without_secrets() -> None:
    """Whoever reads it wants to know what the server itself had to say."""
    code = "import sys; [print('line', n, file=sys.stderr) for n in range(20)]; print('key', sys.argv[1], file=sys.stderr); sys.exit(3)"
    secret = "s3cr3t-t0ken-value"
    async with opened(python(code, secret), env={"API_TOKEN": secret}) as channel:
        end = await end_of(channel)
    assert str(end) == "it exited with code 3"
    assert end.detail.splitlines() == [*(f"line {number}" for number in range(13, 20)), "key [hidden]"]
    assert end.hint is not None
    assert end.hint.endswith("[hidden]` by hand to see what it says.")


@pytest.mark.requirement("B-08")
@pytest.mark.parametrize(("number", "words"), [(signal.SIGKILL, "SIGKILL"), (40, "signal 40")])
async def test_a_server_that_is_killed_is_noticed_with_the_signal(number: int, words: str) -> None:
    """Out of memory looks like this."""
    code = f"import os; os.kill(os.getpid(), {number}); input()"
    async with opened(python(code)) as channel:
        assert str(await end_of(channel)) == f"it was killed by {words}"
        with pytest.raises(ChannelClosed, match=words):
            await channel.send(b"anybody?", None)


@pytest.mark.requirement("B-08")
@pytest.mark.parametrize(("stream", "words"), [(1, "it closed its output but still runs"), (0, "it closed its input")])
async def test_a_server_that_closes_a_stream_and_lives_on_is_noticed(impatient: None, stream: int, words: str) -> None:
    """It will never answer again, and must not be waited for."""
    code = f"import os, signal; os.write(2, b'x'); os.write(1, b'ready\\n'); os.close({stream}); signal.pause()"
    async with opened(python(code)) as channel:
        await lines(channel)
        if stream == 1:
            end = await end_of(channel)
        else:
            await until(lambda: channel._input._lost, what="the closed input to be seen")
            with pytest.raises(ChannelClosed) as refused:
                await channel.send(b"anybody?", None)
            end = refused.value
    assert words in str(end)


async def test_a_flood_on_stderr_is_read_and_forgotten_but_for_its_end() -> None:
    """A server that logs a lot must neither block nor fill our memory."""
    code = (
        "import os, sys\nfor n in range(200): os.write(2, b'x' * 65535 + b'\\n')\nos.write(2, b'the end')\nsys.exit(1)"
    )
    async with opened(python(code)) as channel:
        end = await end_of(channel)
        assert len(channel._last_words._kept) <= 131_072
    assert end.detail.endswith("the end")


@pytest.mark.requirement("B-01", "B-12")
async def test_last_words_without_an_end_are_cut_and_no_half_of_a_secret_is_left() -> None:
    """What is kept of a line begins anywhere; a person is shown a line, not a page, and never the end of a token."""
    code = (
        "import os,sys; sys.stderr.write('x' * 9 + os.environ['TOKEN'] + 'y' * %d + chr(10) + 'z' * 9_000); sys.exit(3)"
    )
    for size in (65_536 - 9_000 - 5, 70_000):
        async with opened(python(code % size), env={"TOKEN": "canary-8f2b61c04d"}) as channel:
            said = (await end_of(channel)).detail
        assert "04d" not in said
        assert "z" * 100 in said
        assert max(map(len, said.splitlines())) <= 500


async def test_leaving_ends_the_whole_tree_gently_then_firmly(impatient: None, tmp_path: Path) -> None:
    """A server that wants to stay, its child and its daemon: all gone, and nothing left open."""
    before = descriptors()
    pids = tmp_path / "pids"
    async with opened(stubborn(pids, "ignore-eof", "ignore-term", "child", "daemon")) as channel:
        await lines(channel)
        assert len([pid for pid in noted(pids) if alive(pid)]) == 3
    assert not [pid for pid in noted(pids) if alive(pid)]
    assert descriptors() <= before


@pytest.mark.requirement("B-01", "B-12")
@pytest.mark.parametrize(
    "ways", [["kill-reaper"], ["kill-reaper", "hidden"], ["stop-reaper"], ["stop-reaper", "ignore-eof"]]
)
async def test_a_server_that_kills_or_stops_whoever_watches_over_it_leaves_nothing_all_the_same(
    impatient: None, tmp_path: Path, ways: list[str]
) -> None:
    """Its daemons are nobody's children then, and would keep its secrets for ever."""
    before = descriptors()
    pids = tmp_path / "pids"
    async with opened(stubborn(pids, "ignore-term", "child", "daemon", *ways)) as channel:
        await lines(channel)
        if "kill-reaper" in ways:
            assert str(await end_of(channel)) == "the process that watches over it was killed"
        assert len(noted(pids)) == 3
        leaving = time.monotonic()
    assert time.monotonic() - leaving < 5
    await until(lambda: not [pid for pid in noted(pids) if alive(pid)], what="the last to be gone", within=1)
    assert descriptors() <= before


async def test_what_carries_anothers_mark_is_left_alone() -> None:
    """Whoever cleans up after one server must not end its neighbour."""
    async with opened(python(ECHO)) as neighbour:
        sweep(fresh_mark())
        await neighbour.send(b"still here", None)
        assert await lines(neighbour) == [b"still here"]


@pytest.mark.requirement("B-01", "B-12")
async def test_an_opening_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C at the wrong moment must not leave a process behind, wherever that moment is."""
    before = descriptors()
    pids = tmp_path / "pids"
    for moment in range(6):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stay, stubborn(pids))
            for _ in range(moment):
                await asyncio.sleep(0)
            tasks.cancel_scope.cancel()
    assert not [pid for pid in noted(pids) if alive(pid)]
    assert descriptors() <= before


async def _stay(command: list[str], **entry: Any) -> None:
    async with opened(command, **entry):
        await anyio.sleep_forever()


@pytest.mark.requirement("B-01")
async def test_nothing_is_left_when_squidbot_itself_is_killed_at_once(tmp_path: Path) -> None:
    """kill -9 leaves no time to clean up: the reaper does it, daemons included."""
    pids, settings = tmp_path / "pids", tmp_path / "settings.json"
    plain = plain_entry()
    stayers = " ".join(stubborn(pids, "ignore-eof", "ignore-term", "child", "daemon"))
    script = f"{stayers} >&2 & exec {plain['command']} {' '.join(plain['args'])}"
    entry = {"command": "sh", "args": ["-c", script], "protocol": "legacy"}
    settings.write_text(json.dumps({"servers": {"one": entry, "two": plain}}))
    command = [sys.executable, str(SERVERS / "host.py"), str(settings)]
    with _program(command) as host:
        try:
            assert host.stdout is not None
            said = await anyio.to_thread.run_sync(host.stdout.readline)
            assert json.loads(said) == {"one": True, "two": True}
            await until(lambda: len(noted(pids)) == 3, what="the tree")
            tree = [*noted(pids), *_below(host.pid)]
            assert len(tree) >= 6
        finally:
            host.kill()
    await until(lambda: not [pid for pid in tree if alive(pid)], what="everything to be gone", within=5)


def _program(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": "."})


def _below(pid: int) -> list[int]:
    """Every process that `pid` started, and what those started."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        children = (task / "children").read_text().split()
        found += [process for child in children for process in (int(child), *_below(int(child)))]
    return found
