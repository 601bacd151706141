"""Where reapers come from: one nursery for all servers of a process, which may be killed, stopped or out of reach."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from squidbot.adapters.mcp import reapers
from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.reapers import SQUIDBOT
from squidbot.adapters.mcp.transport import Opening
from squidbot.adapters.mcp.transports import stdio
from squidbot.adapters.mcp.transports.stdio import ProcessChannel, open_stdio
from squidbot.config.schema import MCPServerConfig
from tests.adapters.mcp.processes import alive, descriptors, noted, stubborn
from tests.fixtures.running import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.requirement("B-01", "B-12"),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every reaper is a program of its own"),
]

SECRET = "s3cr3t-of-one-server"
ECHO = [sys.executable, "-I", "-S", "-c", "import os, sys\nfor line in sys.stdin.buffer: os.write(1, line)"]
OPEN = "import os; print(*sorted(map(int, os.listdir('/proc/self/fd')))[:-1], flush=True); input()"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less time for servers that do not want to end, and for a nursery that does not answer."""
    monkeypatch.setattr(stdio, "GRACE", 0.3)
    monkeypatch.setattr(stdio, "FIRM", 0.2)
    monkeypatch.setattr(stdio, "_MARGIN", 0.8)
    monkeypatch.setattr(reapers, "_PATIENCE", 2.0)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """After each test this process is as it was: no file more, no child more, no nursery."""
    before = descriptors()
    yield
    assert descriptors() <= before
    assert not ours()


def ours() -> list[int]:
    """The nursery of this process and all that it forked, by what they carry; the nursery first."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if f"{SQUIDBOT}={os.getpid()}".encode() in environ(int(entry.name)).split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return sorted(found, key=lambda pid: (parent(pid) != os.getpid(), pid))


def environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def opened(command: list[str], **entry: Any) -> Any:
    config = MCPServerConfig(name="s", command=command[0], args=command[1:], **entry).resolved()
    return open_stdio(config, Opening(Bounds()))


async def echoes(channel: ProcessChannel) -> None:
    """It runs, and we hear it."""
    await channel.send(b"hello", None)
    with anyio.fail_after(10):
        assert await channel.receive() == [b"hello"]


async def test_servers_of_one_process_share_a_nursery_which_ends_with_the_last_of_them() -> None:
    """Two processes for each server, and one for all."""
    async with opened(ECHO) as first:
        await echoes(first)
        assert len(ours()) == 3
        async with opened(ECHO) as second:
            await echoes(second)
            assert len(ours()) == 5
            await echoes(first)
        assert len(ours()) == 3
        await echoes(first)


@pytest.mark.requirement("B-12", "B-14")
async def test_a_killed_nursery_hurts_no_server_and_the_next_one_gets_another() -> None:
    """Its reapers work on, and end their servers as ever."""
    async with opened(ECHO) as first:
        nursery = ours()[0]
        os.kill(nursery, signal.SIGKILL)
        await until(lambda: not alive(nursery), what="its end")
        await echoes(first)
        async with opened(ECHO) as second, opened(ECHO) as third:
            await echoes(second)
            await echoes(third)
            assert nursery not in ours()
            assert [pid for pid in ours() if parent(pid) == os.getpid()]
        await echoes(first)


@pytest.mark.requirement("B-12", "B-14")
async def test_a_stopped_nursery_goes_on_when_it_is_needed() -> None:
    """A server may stop whatever runs as the same user."""
    async with opened(ECHO) as first:
        os.kill(ours()[0], signal.SIGSTOP)
        async with opened(ECHO) as second:
            await echoes(first)
            await echoes(second)


@pytest.mark.requirement("B-12", "B-14")
async def test_what_a_nursery_does_not_do_in_time_is_done_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs for whatever reason keeps nobody from starting a server."""
    monkeypatch.setattr(reapers, "_PATIENCE", 0.3)
    async with opened(ECHO) as first:
        nursery = ours()[0]
        with monkeypatch.context() as unheard:
            unheard.setattr(signal, "SIGCONT", 0)
            os.kill(nursery, signal.SIGSTOP)
            async with opened(ECHO) as second:
                await echoes(second)
        assert not alive(nursery)
        await echoes(first)


async def test_where_there_can_be_no_nursery_every_reaper_is_a_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another system, or an old one; the leaving is the same."""
    monkeypatch.setattr(reapers._nurseries, "_able", False)
    pids = tmp_path / "pids"
    async with opened(stubborn(pids, "ignore-eof", "ignore-term", "child", "daemon")) as channel:
        await channel.receive()
        assert not ours()
        assert len([pid for pid in noted(pids) if alive(pid)]) == 3
    assert not [pid for pid in noted(pids) if alive(pid)]


@pytest.mark.parametrize("call", ["pidfd_open", "pidfd_send_signal"])
def test_a_system_that_gives_no_hold_on_processes_is_known_beforehand(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """An old kernel, or a sandbox: a reaper that cannot be held must not be forked."""

    def refused(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    assert reapers._has_holds()
    monkeypatch.setattr(os if call == "pidfd_open" else signal, call, refused)
    assert not reapers._has_holds()


async def test_one_that_watches_and_was_stopped_ends_also_when_nobody_stands_by(tmp_path: Path) -> None:
    """A server that goes for both must not make one of them stay for ever."""
    pids = tmp_path / "pids"
    async with opened(stubborn(pids, "ignore-eof", "ignore-term", "child", "daemon")) as channel:
        await channel.receive()
        watcher = parent(noted(pids)[-1])
        os.kill(parent(watcher), signal.SIGKILL)
        os.kill(watcher, signal.SIGSTOP)
    assert not alive(watcher)
    await until(lambda: not [pid for pid in noted(pids) if alive(pid)], what="the last to be gone", within=2)


@pytest.mark.requirement("A-08", "B-01")
async def test_nothing_of_a_server_is_in_the_nursery_nor_in_anothers_reaper() -> None:
    """What one server may know, no other can read where it was started from."""
    async with opened(ECHO, env={"TOKEN": SECRET}) as first:
        theirs = set(ours()[1:])
        async with opened(ECHO) as second:
            await echoes(first)
            await echoes(second)
            others = [pid for pid in ours() if pid not in theirs]
            assert len(others) == 3
            for pid in ours():
                assert environ(pid) == f"{SQUIDBOT}={os.getpid()}\0".encode()
            assert all(remembered(pid, SECRET.encode()) for pid in theirs)
            assert not any(remembered(pid, SECRET.encode()) for pid in others)


def remembered(pid: int, words: bytes) -> bool:
    """Whether they are anywhere in what the process can write."""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in maps:
            bounds, rights = line.split()[:2]
            if rights.startswith("rw"):
                begin, end = (int(bound, 16) for bound in bounds.split("-"))
                memory.seek(begin)
                if words in memory.read(end - begin):
                    return True
    return False


async def test_nobody_holds_what_is_anothers() -> None:
    """A descriptor too many is a server's input that never ends, or a neighbour's output to read."""
    async with opened(ECHO), opened([sys.executable, "-I", "-S", "-c", OPEN]) as channel:
        assert await channel.receive() == [b"0 1 2"]
        nursery, *reapers_of_both = ours()
        assert len(held(nursery)) == 4  # three times nothing, and the socket to us
        inodes = [held(pid) for pid in reapers_of_both]
        assert all(len(inode) == 4 for inode in inodes)  # control, status, and how children wake it
        pairs = [{*one} & {*two} for at, one in enumerate(inodes) for two in inodes[at + 1 :]]
        assert sorted(map(len, pairs)) == [0, 0, 0, 0, 2, 2]


def held(pid: int) -> list[str]:
    return [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]


def test_a_system_that_refuses_is_told_with_its_reason(tmp_path: Path) -> None:
    """What a process of ours would have raised comes back over the socket."""
    (tmp_path / "file").touch()
    folder = os.open(tmp_path / "file", os.O_RDONLY)
    nursery = reapers._Nursery()
    with reapers._Ends() as ends:
        ends.status.shutdown(socket.SHUT_WR)
        nursery.ask([*ends.theirs, folder])
        ends.status.settimeout(10)
        assert ends.status.recv(100) == f"refused {errno.ENOTDIR}\n".encode()
    os.close(folder)
    nursery.end()
    for end in (ends.stdin, ends.stdout, ends.stderr, ends.control, ends.status):
        end.close()


def test_event_loops_side_by_side_share_it() -> None:
    """A library is used from more than one thread."""
    failed: list[BaseException] = []

    async def several() -> None:
        for _ in range(5):
            async with opened(ECHO) as channel:
                await echoes(channel)

    def run() -> None:
        try:
            anyio.run(several)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed


FORKS = """
import json, os, sys, threading, anyio
from tests.adapters.mcp.test_reapers import ECHO, echoes, opened, ours

async def one(down):
    async with opened(ECHO) as channel:
        await echoes(channel)
        print(json.dumps([os.getpid(), len(ours())]), flush=True)
        if down:
            pid = os.fork()
            if pid == 0:
                os._exit(child())
            assert os.waitpid(pid, 0)[1] == 0
            await echoes(channel)

def child():
    failed = []

    def run():
        try:
            anyio.run(one, False)
        except BaseException:
            failed.append(sys.excepthook(*sys.exc_info()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return len(failed)

anyio.run(one, True)
"""


def test_a_fork_of_the_process_has_a_nursery_of_its_own() -> None:
    """Otherwise the nursery would outlive its process, and answers go to the wrong one."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    (first, of_first), (second, of_second) = map(json.loads, done.stdout.splitlines())
    assert first != second
    assert of_first == of_second == 3
