"""The admin token of the first start: made once, kept in the state folder for its owner alone."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anyio import to_thread

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.members import Principal
from squidbot.core.services.admission import Admission

FILE = "admin-token"
_WHO = Caller("", origin="system")


async def admin_token(admission: Admission, state: Path) -> str:
    """The token in the file, if it is still good, else a new one, which is written there. Raises NotRecorded, OSError."""
    path = state / FILE
    if token := await _good(admission, path):
        return token
    # Workers start side by side, and one token is enough.
    with _alone(path.with_name(f".{FILE}.lock")) as lock:
        await to_thread.run_sync(fcntl.flock, lock, fcntl.LOCK_EX)
        if token := await _good(admission, path):
            return token
        made = await admission.create(_WHO, "admin", name="admin")
        _write(path, made.token)
        return made.token


async def _good(admission: Admission, path: Path) -> str | None:
    token = _read(path)
    if token is None:
        return None
    judged = await admission.judge(token)
    return token if isinstance(judged, Principal) and judged.right == "admin" else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8").strip()
    except FileNotFoundError:
        return None


@contextmanager
def _alone(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _write(path: Path, token: str) -> None:
    fresh = path.with_name(f".{FILE}.{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"{token}\n")
    fresh.replace(path)
