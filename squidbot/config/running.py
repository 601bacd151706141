"""Where the running gateway of a state folder is: one at a time, and found by the other commands."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from squidbot.core.domain.errors import ConfigError

_FILE = "gateway.json"
_LOCK = "gateway.lock"
_ATTEMPTS = 10
_BEAT = 0.02


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """A gateway that answers."""

    url: str
    pid: int


def running_gateway(state: Path) -> RunningGateway | None:
    """The gateway that runs on this state folder, if one does; what a killed one left behind does not count."""
    try:
        with (state / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    except OSError:
        return None
    else:
        return None
    try:
        found = json.loads((state / _FILE).read_text("utf-8"))
        return RunningGateway(str(found["url"]), int(found["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is just starting


@contextmanager
def only_gateway(state: Path) -> Iterator[Callable[[str], None]]:
    """Be the one gateway of this state folder; the answer takes the url once it is known. Raises ConfigError."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = state / _FILE
    with (state / _LOCK).open("ab") as lock:
        _hold(lock, state)
        file.unlink(missing_ok=True)

        def announce(url: str) -> None:
            fresh = file.with_name(f".{_FILE}.{os.getpid()}")
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(asdict(RunningGateway(url, os.getpid())), stream)
            fresh.replace(file)

        try:
            yield announce
        finally:
            file.unlink(missing_ok=True)


def _hold(lock: IO[bytes], state: Path) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Somebody who only asks holds it for a moment.
            if attempt + 1 == _ATTEMPTS:
                raise _taken(state) from None
            time.sleep(_BEAT)
    return None


def _taken(state: Path) -> ConfigError:
    running = running_gateway(state)
    where = f" at {running.url} (process {running.pid})" if running else ""
    return ConfigError(
        f"a gateway runs already{where} on the state folder {str(state)!r}",
        hint="'squidbot status' asks it. A second one needs a folder of its own: set SQUIDBOT_HOME.",
    )
