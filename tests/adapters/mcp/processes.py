"""Server processes of the tests: how they are started, what they were sent, and whether they are gone."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


def scripted(script: Mapping[str, Any], heard: Path | None = None, **entry: Any) -> dict[str, Any]:
    """The entry of a server that answers as `script` says (see servers/scripted.py), in the handshake era."""
    arguments = [json.dumps(script), *([str(heard)] if heard else [])]
    command = {"command": sys.executable, "args": ["-I", "-S", str(SERVERS / "scripted.py"), *arguments]}
    return {**command, "protocol": "legacy", **entry}


def messages(heard: Path, method: str | None = None) -> list[dict[str, Any]]:
    """What a scripted server was sent, or what of it was of `method`."""
    read = [json.loads(line) for line in heard.read_text("utf-8").splitlines()] if heard.exists() else []
    return [message for message in read if method is None or message.get("method") == method]
