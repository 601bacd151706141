"""Checks values for squidbot in a process that can be killed: a schema is a program, and a stranger wrote it.

Run as `python -I -S worker.py SYS_PATH…`, on a socket that is its standard input and output; it ends when that closes.
A frame is four bytes of length and a body. It sends an empty one when it is ready. From then on it reads two for each
check, `(digest, schema or None)` and the value, in the interpreter's own format, and answers with the problems as JSON.
"""

import contextlib
import json
import marshal
import os
import signal
import struct
import sys
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

LENGTH = struct.Struct(">I")
SCHEMAS = 256
"""How many schemas are remembered. squidbot counts along, and sends again what was forgotten."""

_MEMORY = 512 * 1024 * 1024
_START_UP, _CHECK = 5.0, 2.0
"""Seconds after which this process ends itself: squidbot, which would have ended it by then, may have been killed."""


def main() -> None:
    """Serve until squidbot closes the socket."""
    sys.path[:] = sys.argv[1:]
    _limit_memory()
    # The default action, not a handler in Python: that would wait for the regular expression to end.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _alarm(_START_UP)
    with os.fdopen(0, "rb") as requests, os.fdopen(1, "wb") as answers:
        _serve(requests, answers)


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer request after request. What cannot be answered ends the process, and that is answer enough."""
    from squidbot.adapters.schemas.validation import all_problems, compile_schema
    from squidbot.core.domain.recent import Recent

    compiled: Recent[bytes, tuple[Validator | None]] = Recent(SCHEMAS)
    compile_schema({})
    _alarm(0)
    _write(answers, b"")
    while request := _read(requests):
        content = _read(requests)
        _alarm(_CHECK)
        # The interpreter's own format is for friends only; nobody but squidbot has the other end of the socket.
        digest, schema = marshal.loads(request)  # noqa: S302
        [validator] = compiled.get(digest) or compiled.put(digest, (compile_schema(schema),))
        found = all_problems(validator, marshal.loads(content)) if validator else ()  # noqa: S302
        _alarm(0)
        _write(answers, json.dumps([[problem.path, problem.message, problem.hint] for problem in found]).encode())


def _read(requests: IO[bytes]) -> bytes:
    """The next frame, or nothing when there are no more."""
    header = requests.read(LENGTH.size)
    return requests.read(*LENGTH.unpack(header)) if header else b""


def _write(answers: IO[bytes], body: bytes) -> None:
    answers.write(LENGTH.pack(len(body)) + body)
    answers.flush()


def _alarm(seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _limit_memory() -> None:
    """Take no more than a check can be worth, and leave no image of it behind, where the platform sees to that."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


if __name__ == "__main__":
    main()
