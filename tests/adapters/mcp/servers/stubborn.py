"""A process that is hard to end, with children that are harder: what a reaper has to deal with.

python -I -S stubborn.py PIDS [ignore-eof] [ignore-term] [child] [daemon] [slow-flush] [exit] [kill-reaper] [stop-reaper] [hidden]

It writes the number of every process that it starts, and its own, to the file PIDS, one a line, then reads its input
to the end. `slow-flush`: once the input has ended it needs a moment, then writes "flushed" to PIDS.
`kill-reaper` and `stop-reaper`: once all are started, whoever watches over them is killed or stopped.
`hidden`: the daemon has an environment of its own, in which nobody finds what all others carry.
"""

import os
import signal
import sys
import time


def note(path: str, text: object) -> None:
    with open(path, "a", encoding="ascii") as file:  # noqa: PTH123 - pathlib is half of the start time
        file.write(f"{text}\n")


def noted(path: str) -> int:
    with open(path, encoding="ascii") as file:  # noqa: PTH123
        return len(file.readlines())


def stay(path: str) -> None:
    note(path, os.getpid())
    while True:
        signal.pause()


def main() -> None:
    path, *ways = sys.argv[1:]
    if "ignore-term" in ways:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "stay" in ways:
        stay(path)
    if "child" in ways and os.fork() == 0:
        stay(path)
    if "daemon" in ways and os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        if "hidden" in ways:
            os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, path, "stay"], {})
        # The standard streams stay open: the worst kind.
        stay(path)
    note(path, os.getpid())
    while noted(path) < 1 + ("child" in ways) + ("daemon" in ways):
        time.sleep(0.005)
    os.write(1, b"ready\n")
    if "stop-reaper" in ways:
        os.kill(os.getppid(), signal.SIGSTOP)
    if "kill-reaper" in ways:
        os.kill(os.getppid(), signal.SIGKILL)
    if "exit" in ways:
        return
    sys.stdin.buffer.read()
    if "slow-flush" in ways:
        time.sleep(0.3)
        note(path, "flushed")
    while "ignore-eof" in ways:
        signal.pause()


if __name__ == "__main__":
    main()
