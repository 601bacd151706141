"""Looks at the processes of this machine, for tests that must leave none behind."""

import sys
from pathlib import Path

SERVERS = Path(__file__).parent / "servers"


def alive(pid: int) -> bool:
    """Whether the process runs; one that is dead and not yet buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def noted(pids: Path) -> list[int]:
    """The processes that a stubborn server wrote down."""
    return [int(line) for line in pids.read_text("ascii").split() if line.isdecimal()] if pids.exists() else []


def descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def stubborn(pids: Path, *ways: str) -> list[str]:
    """The command of a process that is hard to end."""
    return [sys.executable, "-I", "-S", str(SERVERS / "stubborn.py"), str(pids), *ways]
