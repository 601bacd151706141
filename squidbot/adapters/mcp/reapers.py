"""Where reapers come from: the nursery forks them; where there is none, each is a program of its own."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

SQUIDBOT = "SQUIDBOT_PROCESS"
"""The variable in which a nursery and all that it forks carry the number of the squidbot they belong to; the only one."""
_PATIENCE = 5.0
"""Seconds that the nursery has to fork a reaper; it takes one or two milliseconds."""
_LONGEST = 65_536
"""What may be spelled out on a socket without its other end having to read it first."""
_DYING = 1.0
_PROGRAMS = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Command:
    """What a reaper is to start, and how long the server then has to end."""

    program: str
    words: Sequence[str]
    environment: Mapping[str, str]
    folder: Path | None
    grace: float
    firm: float

    def spelled(self) -> bytes:
        """All but the folder as the nursery's reapers read it."""
        words = [str(self.grace), str(self.firm), str(1 + len(self.words)), self.program, *self.words]
        words += [f"{name}={value}" for name, value in self.environment.items()]
        spelled = b"\0".join(os.fsencode(word) for word in words)
        if spelled.count(b"\0") != len(words) - 1 or any("=" in name for name in self.environment):
            raise ValueError("a null byte in a word, or an equals sign in a variable's name")
        return spelled


@dataclass(frozen=True, slots=True)
class Reaper:
    """One server's reaper, the server's three streams, and the pipe and the socket between the reaper and us."""

    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO
    control: BinaryIO
    status: socket.socket
    processes: "_Program | _Forked"


@dataclass(frozen=True, slots=True)
class _Program:
    """A reaper that is a program of its own, and our child."""

    popen: "subprocess.Popen[bytes]"

    def wake(self) -> None:
        """Let it go on, if the server stopped it."""
        self.popen.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        self.popen.kill()

    def bury(self) -> None:
        """Wait until it is gone for good."""
        self.popen.wait()


@dataclass(frozen=True, slots=True)
class _Forked:
    """The two processes of a reaper that the nursery forked: descriptors, for a number may soon be another's."""

    holds: tuple[int, ...]
    nursery: "_Nursery"

    def wake(self) -> None:
        """Let them go on, if the server stopped them."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End them at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        for hold in self.holds:
            with suppress(OSError):
                signal.pidfd_send_signal(hold, number)

    def bury(self) -> None:
        """Wait until they are gone for good, and let go of the nursery."""
        dying = select.poll()
        for hold in self.holds:
            dying.register(hold, select.POLLIN)
            dying.poll(_DYING * 1000)
            dying.unregister(hold)
            with suppress(OSError):  # ours only if the nursery was killed and orphans come to us
                os.waitid(os.P_PIDFD, hold, os.WEXITED | os.WNOHANG)
            os.close(hold)
        _nurseries.release(self.nursery)


def start(command: Command) -> Reaper:
    """Start a server under a reaper. Takes its time: not for the loop. OSError if the system refuses."""
    spelled = command.spelled()
    if len(spelled) <= _LONGEST and (nursery := _nurseries.borrow()) is not None:
        try:
            return _forked(nursery, command, spelled)
        except _Lost:
            _nurseries.discard(nursery)
            _nurseries.release(nursery)
        except BaseException:
            _nurseries.release(nursery)
            raise
    return _direct(command)


class _Lost(Exception):
    """The nursery is gone, or does not answer."""


class _Ends:
    """The two ends of everything between a server, its reaper and us; leaving closes those of theirs."""

    def __init__(self) -> None:
        with ExitStack() as undo:
            self.theirs: list[int] = []
            ours = []
            for writes in (True, False, False, True):
                read, write = os.pipe()
                mine, its = (write, read) if writes else (read, write)
                ours.append(undo.enter_context(closing(open(mine, "wb" if writes else "rb", buffering=0))))  # noqa: PTH123, SIM115
                undo.callback(os.close, its)
                self.theirs.append(its)
            self.status, status = socket.socketpair()
            undo.callback(self.status.close)
            self.theirs.append(status.detach())
            self.stdin, self.stdout, self.stderr, self.control = ours
            undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        for descriptor in self.theirs:
            os.close(descriptor)
        if failed:
            for mine in (self.stdin, self.stdout, self.stderr, self.control, self.status):
                mine.close()

    def reaper(self, processes: _Program | _Forked) -> Reaper:
        """Our ends, and whom they lead to."""
        self.status.settimeout(0)
        return Reaper(self.stdin, self.stdout, self.stderr, self.control, self.status, processes)


def _direct(command: Command) -> Reaper:
    program = [sys.executable, "-I", "-S", str(_PROGRAMS / "reaper.py")]
    with _Ends() as ends:
        stdin, stdout, stderr, control, status = ends.theirs
        given = [str(control), str(status), str(command.grace), str(command.firm)]
        popen = subprocess.Popen(
            [*program, *given, "--", command.program, *command.words],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=command.folder,
            env=command.environment,
            pass_fds=(control, status),
            start_new_session=True,
        )
        return ends.reaper(_Program(popen))


def _forked(nursery: "_Nursery", command: Command, spelled: bytes) -> Reaper:
    with _Ends() as ends, ExitStack() as opened:
        folder = os.open(command.folder or ".", os.O_PATH | os.O_DIRECTORY)
        opened.callback(os.close, folder)
        ends.status.settimeout(_PATIENCE)
        try:
            ends.status.sendall(spelled)
            ends.status.shutdown(socket.SHUT_WR)
            nursery.ask([*ends.theirs, folder])
        except OSError as error:
            raise _Lost from error
        for descriptor in ends.theirs:
            os.close(descriptor)
        ends.theirs.clear()
        try:
            said, holds, _, _ = socket.recv_fds(ends.status, 64, 2, socket.MSG_CMSG_CLOEXEC)
        except OSError as error:
            raise _Lost from error
        if said.startswith(b"refused "):
            number = int(said.split()[1])
            raise OSError(number, os.strerror(number))
        if len(holds) != 2:
            for hold in holds:
                os.close(hold)
            raise _Lost
        return ends.reaper(_Forked(tuple(holds), nursery))


class _Nursery:
    """The program that forks reapers, and how many of them are in use."""

    def __init__(self) -> None:
        self.users = 0
        self._lost = False
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            try:
                self._popen = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_PROGRAMS / "nursery.py"), str(its.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={SQUIDBOT: str(os.getpid())},
                    pass_fds=(its.fileno(),),
                    start_new_session=True,
                )
            except BaseException:
                self._socket.close()
                raise
        self._socket.settimeout(_PATIENCE)

    def ask(self, descriptors: Sequence[int]) -> None:
        """Have it fork a reaper for these; OSError if it is not there any more."""
        self._popen.send_signal(signal.SIGCONT)  # a server may have stopped it
        socket.send_fds(self._socket, [b"."], descriptors)

    def end(self, *, at_once: bool = False) -> None:
        """Let it end, by itself or now; it is forgotten, and what it forked goes on."""
        self._socket.close()
        if at_once:
            self._popen.kill()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_DYING)
            return
        self._popen.kill()
        self._popen.wait()

    def disown(self) -> None:
        """In a fork of this process: it is the other's."""
        self._socket.close()
        self._popen.returncode = 0


class _Nurseries:
    """The nursery of this process: there from the first server that needs it to the end of the last."""

    def __init__(self) -> None:
        self._able = _has_holds()
        self._lock = threading.Lock()
        self._current: _Nursery | None = None

    def borrow(self) -> _Nursery | None:
        """The nursery, for one server more; None where there can be none."""
        if not self._able:
            return None
        with self._lock:
            if self._current is None:
                with suppress(OSError):
                    self._current = _Nursery()
            if self._current is not None:
                self._current.users += 1
            return self._current

    def release(self, nursery: _Nursery) -> None:
        """One server less; with the last one it ends."""
        with self._lock:
            nursery.users -= 1
            if nursery.users or self._current is not nursery:
                return
            self._current = None
        nursery.end()

    def discard(self, nursery: _Nursery) -> None:
        """What is lost or does not answer is not asked again."""
        with self._lock:
            if self._current is not nursery:
                return
            self._current = None
        nursery.end(at_once=True)

    def begin_anew(self) -> None:
        """In a fork of this process: the nursery is the other's."""
        self._lock = threading.Lock()
        if self._current is not None:
            self._current.disown()
            self._current = None


def _has_holds() -> bool:
    """Whether processes can be held by descriptors: Python may know how to, and an old or a walled-in system not."""
    if sys.platform != "linux":
        return False
    try:
        hold = os.pidfd_open(os.getpid())
    except (AttributeError, OSError):
        return False
    try:
        signal.pidfd_send_signal(hold, 0)
    except (AttributeError, OSError):
        return False
    finally:
        os.close(hold)
    return True


_nurseries = _Nurseries()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_nurseries.begin_anew)
