"""The reaper: however a server behaves and however squidbot ends, nothing of the server is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from squidbot.adapters.mcp import reaper
from tests.adapters.mcp.processes import alive, noted, stubborn

pytestmark = [
    pytest.mark.requirement("B-01"),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are process groups only"),
]

GRACE = 0.4
FIRM = 0.2


@dataclass
class Reaped:
    """A reaper at work, seen from where squidbot sits."""

    process: subprocess.Popen[bytes]
    control: int
    status: int

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def let_go(self) -> float:
        """Close what squidbot holds, as a stop or a kill -9 does; how long the reaper then took."""
        began = time.monotonic()
        assert self.process.stdin is not None
        self.process.stdin.close()
        os.close(self.control)
        self.control = -1
        self.process.wait(timeout=10)
        return time.monotonic() - began

    def said(self) -> bytes:
        """All that it wrote about the server's end."""
        self.process.wait(timeout=10)
        return os.read(self.status, 1000)


@contextmanager
def reaping(*command: str, grace: float = GRACE) -> Iterator[Reaped]:
    """Run `command` under a reaper."""
    control_read, control = os.pipe()
    status, status_write = os.pipe()
    arguments = [sys.executable, reaper.__file__, str(control_read), str(status_write), str(grace), str(FIRM)]
    process = subprocess.Popen(
        [*arguments, "--", command[0], *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(control_read, status_write),
        start_new_session=True,
    )
    os.close(control_read)
    os.close(status_write)
    reaped = Reaped(process, control, status)
    try:
        yield reaped
    finally:
        if reaped.control >= 0:
            os.close(reaped.control)
        with process:
            process.wait(timeout=10)
        os.close(reaped.status)


def test_a_server_that_obeys_the_end_of_its_input_is_not_even_asked(tmp_path: Path) -> None:
    """Gently first: a good server ends by itself and says so."""
    with reaping(*stubborn(tmp_path / "pids")) as reaped:
        reaped.ready()
        reaped.let_go()
        assert reaped.said() == b"exit 0\ndone\n"


def test_a_server_that_needs_a_moment_to_write_down_its_state_gets_it(tmp_path: Path) -> None:
    """Losing data at every stop would be worse than waiting."""
    pids = tmp_path / "pids"
    with reaping(*stubborn(pids, "slow-flush"), grace=5) as reaped:
        reaped.ready()
        reaped.let_go()
        assert reaped.said() == b"exit 0\ndone\n"
    assert "flushed" in pids.read_text("ascii")


def test_a_server_that_ignores_the_end_of_its_input_is_told_to_end(tmp_path: Path) -> None:
    """SIGTERM is what programs expect."""
    with reaping(*stubborn(tmp_path / "pids", "ignore-eof")) as reaped:
        reaped.ready()
        assert reaped.let_go() >= GRACE
        assert reaped.said() == b"signal 15\ndone\n"


def test_a_whole_tree_that_ignores_everything_is_killed_daemons_included(tmp_path: Path) -> None:
    """What daemonises itself has left the process group, and must still be found."""
    pids = tmp_path / "pids"
    with reaping(*stubborn(pids, "ignore-eof", "ignore-term", "child", "daemon")) as reaped:
        reaped.ready()
        assert len(noted(pids)) == 3
        assert reaped.let_go() < GRACE + FIRM + 2
        assert reaped.said() == b"signal 9\ndone\n"
    assert not [pid for pid in noted(pids) if alive(pid)]


def test_a_server_that_ends_by_itself_takes_its_children_with_it(tmp_path: Path) -> None:
    """A crashed server's helpers would run on for ever, with its secrets."""
    pids = tmp_path / "pids"
    with reaping(*stubborn(pids, "child", "daemon", "exit")) as reaped:
        assert reaped.said() == b"exit 0\ndone\n"
    assert len(noted(pids)) == 3
    assert not [pid for pid in noted(pids) if alive(pid)]


def test_what_is_made_while_the_reaper_looks_for_what_is_left_does_not_escape(tmp_path: Path) -> None:
    """A look at all processes takes a moment, in which one can make another and be gone: then neither is seen."""
    pids = tmp_path / "pids"
    program = f"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
if os.fork():
    os._exit(9)
os.setsid()
for _ in range(400):
    if os.fork():
        os._exit(0)
with open({str(pids)!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
time.sleep(60)
"""
    for _ in range(5):
        with reaping(sys.executable, "-S", "-c", program) as reaped:
            reaped.ready()
            assert reaped.said().startswith(b"exit 9\n")
    time.sleep(0.5)  # what escaped would have come to its end by then, and have said who it is
    assert not [pid for pid in noted(pids) if alive(pid)]


def test_a_server_that_cannot_be_executed_is_told_with_the_systems_reason(tmp_path: Path) -> None:
    """A file may be there, be executable, and still be no program."""
    script = tmp_path / "no-program"
    script.write_text("neither a script nor a binary\n")
    script.chmod(0o755)
    with reaping(str(script)) as reaped:
        assert reaped.said().splitlines()[0] == b"error 8"


def test_when_nobody_is_left_to_be_told_the_server_is_ended_all_the_same(tmp_path: Path) -> None:
    """After a kill -9 of squidbot the other end of every pipe is gone."""
    pids = tmp_path / "pids"
    with reaping(*stubborn(pids, "ignore-eof", "child")) as reaped:
        reaped.ready()
        os.close(reaped.status)
        reaped.status = os.open(os.devnull, os.O_RDONLY)
        reaped.let_go()
    assert not [pid for pid in noted(pids) if alive(pid)]


def test_signals_of_a_terminal_do_not_end_the_reaper_before_its_server(tmp_path: Path) -> None:
    """Ctrl-C goes to everybody at once, and the order of dying must be ours."""
    pids = tmp_path / "pids"
    with reaping(*stubborn(pids)) as reaped:
        reaped.ready()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(reaped.process.pid, number)
        assert alive(noted(pids)[0])
        reaped.let_go()
        assert reaped.said() == b"exit 0\ndone\n"


@pytest.mark.requirement("B-12")
def test_what_a_server_leaves_that_killed_its_parent_is_ended_by_the_one_that_stands_by(tmp_path: Path) -> None:
    """Its daemons are nobody's children then, and one that hides its environment is found by nothing else."""
    pids = tmp_path / "pids"
    with reaping(*stubborn(pids, "ignore-term", "child", "daemon", "hidden", "kill-reaper")) as reaped:
        assert reaped.said() == b""
        assert reaped.process.returncode == 1
    assert len(noted(pids)) == 3
    assert not [pid for pid in noted(pids) if alive(pid)]


@pytest.mark.requirement("B-12")
def test_a_server_that_stopped_its_parent_is_ended_when_its_time_comes(tmp_path: Path) -> None:
    """Also after a kill -9 of squidbot, which can then wake nobody."""
    pids = tmp_path / "pids"
    with reaping(*stubborn(pids, "ignore-eof", "ignore-term", "child", "daemon", "stop-reaper")) as reaped:
        reaped.ready()
        reaped.let_go()
        assert reaped.said() == b"signal 9\ndone\n"
    assert not [pid for pid in noted(pids) if alive(pid)]


def test_where_processes_cannot_be_listed_the_process_group_stands_for_the_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not every system has /proc."""

    def hidden(path: str) -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", hidden)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        assert reaper._descendants(process.pid) == [-process.pid]
        reaper._signal(reaper._descendants(process.pid), signal.SIGKILL)
        assert process.wait(timeout=10) == -signal.SIGKILL
    assert reaper._descendants(process.pid) == []
    reaper._signal([process.pid], signal.SIGKILL)
