"""Lets the judge's clients run a few at a time: python turn.py CLIENT URL waits for a turn and becomes the client.

The judge starts all of a revision's scenarios at once; on a small machine that many clients would measure the
machine's patience (keep-alives that run out, deadlines that pass) and not the client.
"""

import fcntl
import os
import sys
import time

TURNS = 2


def main() -> None:
    """Hold one of the turns' locks; it is inherited by the client and ends with it."""
    folder = os.environ["SQUIDBOT_TEST_TURNS"]
    locks = [os.open(os.path.join(folder, f"turn-{n}"), os.O_RDWR | os.O_CREAT) for n in range(TURNS)]  # noqa: PTH118
    while not any(_taken(lock) for lock in locks):
        time.sleep(0.02)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    os.set_inheritable(lock, True)
    return True


if __name__ == "__main__":
    main()
