"""Ends what is left of a server whose reaper was killed: it is known by the mark in its environment."""

import os
import secrets
import signal
import time
from contextlib import suppress
from pathlib import Path

MARK = "SQUIDBOT_SERVER_MARK"
"""The variable that everything started by one server carries, and nothing else."""
_PATIENCE = 2.0
_TICK = 0.02
_CALM = 2
"""How often in a row nothing must be found: what forks and ends may slip past one look."""


def fresh_mark() -> str:
    """A mark that nobody has."""
    return secrets.token_hex(16)


def sweep(mark: str) -> None:
    """Kill whatever carries `mark`, again and again until there is nothing more. Takes its time: not for the loop."""
    until = time.monotonic() + _PATIENCE
    calm = 0
    while calm < _CALM and time.monotonic() < until:
        found = _carrying(mark)
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        calm = 0 if found else calm + 1
        time.sleep(_TICK)


def _carrying(mark: str) -> list[int]:
    """Every living process with the mark; none where that cannot be seen. The dead have no environment."""
    wanted = f"{MARK}={mark}".encode("ascii")
    found = []
    with suppress(OSError):
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                with suppress(OSError):
                    if wanted in (process / "environ").read_bytes().split(b"\0"):
                        found.append(int(process.name))
    return found
