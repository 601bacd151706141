"""Runs one server and sees to it that nothing of it is left, however squidbot ends.

Forked by the nursery (`nursery.py`), or a program of its own (`python -I -S reaper.py CONTROL STATUS GRACE FIRM -- COMMAND
ARGS…`); standard library only, no part of squidbot imported. The server's three standard streams are squidbot's own:
nothing passes through here.

CONTROL is a pipe that squidbot holds open: when it says something, because squidbot stops the server, or closes, because
squidbot was killed, the server has GRACE seconds to end by itself (its input is closed by then), then its whole tree
gets SIGTERM, and FIRM seconds later SIGKILL, until the tree is empty. When it closes after it said something there is no time: SIGTERM comes at
once, and SIGKILL soon. On STATUS goes one line: `exit CODE`, `signal NUMBER` or `error ERRNO`, and `done` once nothing
is left, if all went as it should. On Linux this process is a child subreaper, so that what daemonises itself is still found; and there are
two of it, for a server can kill its parent: the second only stands by, inherits all that the first leaves, and ends it.
"""

# These two bare: every server has a reaper, and their public faces double the time that it takes to start.
import _ctypes
import _signal as signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

MYPY = False
if MYPY:
    from collections.abc import Callable, Mapping

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_TICK = 0.02
_HURRY = 0.3
"""Seconds between SIGTERM and SIGKILL when there is no time."""
_MARGIN = 0.5
"""Seconds that the one which watches has beyond its time, before the one that stands by ends it."""
_NUDGE = 0.1
"""Seconds after which it is woken again: the server may have stopped it, at any moment."""


def main() -> None:
    """Start the server, then wait for its end or for ours."""
    control, status = int(sys.argv[1]), int(sys.argv[2])
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    defy_signals()
    os._exit(tend(control, status, float(sys.argv[3]), float(sys.argv[4]), sys.argv[6:], os.environ))


def defy_signals() -> None:
    """What a terminal or a service manager sends to everybody is not for us: the order of dying is squidbot's."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def tend(
    control: int,
    status: int,
    grace: float,
    firm: float,
    command: "list[str] | list[bytes]",
    environ: "Mapping[str, str] | Mapping[bytes, bytes]",
    announce: "Callable[[int, int], None] | None" = None,
) -> int:
    """Be the reaper of one server, from its start to its end; the code to exit with.

    `announce(standing, watching)` is called with the numbers of both processes before there is a server.
    """
    adopt_orphans()
    wakeup = _wakened_by_children()
    standing = os.getpid()
    watcher = os.fork() if sys.platform == "linux" else 0
    if watcher:
        _close_streams()
        if not _stand_by(watcher, control, wakeup, grace + firm + _MARGIN):
            _end(0, 0.0, 0.0, status, control, wakeup)
            return 1
        say(status, b"done\n")
        return 0
    adopt_orphans()
    os.close(wakeup)
    wakeup = _wakened_by_children()
    if announce:
        announce(standing, os.getpid())
    server = _start(command, environ, status)
    _close_streams()
    ended = _watch(server, control, wakeup, status)
    _end(server, 0.0 if ended else grace, firm, status, control, wakeup)
    if sys.platform != "linux":
        say(status, b"done\n")
    os._exit(0)


def adopt_orphans() -> None:
    """What is below us and loses its parent becomes our child, where there is such a thing."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _wakened_by_children() -> int:
    """A descriptor that can be read when a child has ended."""
    wakeup, alarm = os.pipe()
    os.set_blocking(alarm, False)
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    former = signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    if former >= 0:
        os.close(former)  # of the process that this one was forked from
    return wakeup


def _close_streams() -> None:
    """The server's streams are between it and squidbot: nobody else may hold them open."""
    for stream in (0, 1, 2):
        os.close(stream)


def _stand_by(watcher: int, control: int, wakeup: int, patience: float) -> bool:
    """Wait for the one that watches; False if it did not end by itself, and its work is to be done in its place."""
    awaited, deadline = [control, wakeup], 0.0
    while True:
        ready, _, _ = select.select(awaited, [], [], _NUDGE if deadline else None)
        if wakeup in ready:
            os.read(wakeup, 4096)
        pid, code = os.waitpid(watcher, os.WNOHANG)
        if pid:
            return code == 0 and _childless()
        if control in ready:
            awaited, deadline = [wakeup], time.monotonic() + patience
        if deadline:
            os.kill(watcher, signal.SIGCONT if time.monotonic() < deadline else signal.SIGKILL)


def _start(
    command: "list[str] | list[bytes]", environ: "Mapping[str, str] | Mapping[bytes, bytes]", status: int
) -> int:
    """Fork the server into a session of its own, with the signals that a program expects."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execve(command[0], command[1:], environ)
    except OSError as error:
        say(status, b"error %d\n" % (error.errno or 0))
    os._exit(127)


def _watch(server: int, control: int, wakeup: int, status: int) -> bool:
    """Wait until the server ends (True) or squidbot lets go of it (False)."""
    while True:
        ready, _, _ = select.select([control, wakeup], [], [])
        if wakeup in ready:
            os.read(wakeup, 4096)
            if _reap(server, status):
                return True
        if control in ready:
            return False


def _end(server: int, grace: float, firm: float, status: int, control: int, wakeup: int) -> None:
    """Wait, then ask, then kill, until there is no descendant any more."""
    started = time.monotonic()
    asked = False
    while True:
        ended = _reap(server, status)
        waited = time.monotonic() - started
        if _is_hurried(control):
            grace, firm = min(grace, waited), min(firm, _HURRY)
        if not ended and not asked and waited < grace:
            _pause(wakeup)
            continue
        left = _descendants(server)
        if not left:
            _reap(server, status)  # what has died since
            if sys.platform != "linux" or _childless():
                return
            # Seen by nobody who looked: it was made while we did, by one that ended meanwhile.
        if waited >= grace + firm:
            _signal(left, signal.SIGKILL)
        elif (waited >= grace or ended) and not asked:
            asked = True
            grace = waited
            _signal(left, signal.SIGTERM)
        _pause(wakeup)


def _pause(wakeup: int) -> None:
    """A moment, cut short by the end of a child."""
    if select.select([wakeup], [], [], _TICK)[0]:
        os.read(wakeup, 4096)


def _is_hurried(control: int) -> bool:
    """Whether squidbot said something and then hung up. It is not read: there are two of us who want to know."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    return any(news & select.POLLIN and news & select.POLLHUP for _, news in poll.poll(0))


def _reap(server: int, status: int) -> bool:
    """Collect every dead child; True once the server itself was among them."""
    ended = False
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return ended
        if pid == server:
            ended = True
            number = os.waitstatus_to_exitcode(code)
            say(status, b"exit %d\n" % number if number >= 0 else b"signal %d\n" % -number)


def say(status: int, line: bytes) -> None:
    """Tell squidbot, if it still listens."""
    try:
        os.write(status, line)
    except OSError:
        pass


def _descendants(server: int) -> list[int]:
    """Every living process below this one; where that cannot be seen, the server's process group."""
    if sys.platform == "linux" and _childless():
        return []
    parents: dict[int, int] = {}
    try:
        for entry in os.listdir("/proc"):
            if entry.isdecimal():
                try:
                    with open("/proc/" + entry + "/stat", "rb") as stat:
                        fields = stat.read().rpartition(b")")[2].split()
                except OSError:
                    continue
                if fields[0] != b"Z":
                    parents[int(entry)] = int(fields[1])
    except OSError:
        return _group(server) if server else []
    found: list[int] = []
    frontier = {os.getpid()}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        found.extend(frontier)
    return found


def _childless() -> bool:
    """Whether nothing at all is left: an orphan would be the subreaper's child. Looking through /proc takes long."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _group(server: int) -> list[int]:
    """The server's process group, as `os.kill` spells it, while there is anybody in it."""
    try:
        os.killpg(server, 0)
    except OSError:
        return []
    return [-server]


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def _prctl(option: int, value: int) -> None:
    """The system call of that name, where there is one."""
    if sys.platform == "linux":
        itself = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
        _ctypes.call_function(_ctypes.dlsym(itself, "prctl"), (option, value, 0, 0, 0))


if __name__ == "__main__":
    main()
