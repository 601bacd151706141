"""Makes recorded calls until it is done or killed, and notes outside the trail what reached a server and what was answered.

python -m tests.faults.promises.caller FOLDER --first 0 --calls 100 [--callers 8] [--url URL] [--door MODULE:FUNCTION]

Appends names to FOLDER/effects and FOLDER/answers. What was written to a file stays there when the writer is killed.
"""

import argparse
import os
from pathlib import Path

import anyio

from tests.faults.promises import doors


class Notes:
    """A file of names, one a line, each whole or absent."""

    def __init__(self, path: Path) -> None:
        self._number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, name: str) -> None:
        os.write(self._number, f"{name}\n".encode())


async def main(door: doors.Door, url: str | None, folder: Path, first: int, calls: int, callers: int) -> None:
    answers, effects = Notes(folder / "answers"), Notes(folder / "effects")
    numbers = iter(range(first, first + calls))

    async with door(folder / "state", url, effects.add) as call:

        async def caller() -> None:
            for number in numbers:
                name = f"{os.getpid()}-{number}"
                await call(name)
                answers.add(name)

        async with anyio.create_task_group() as group:
            for _ in range(callers):
                group.start_soon(caller)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--door", default=doors.STORE)
    parser.add_argument("--url")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--callers", type=int, default=8)
    options = parser.parse_args()
    anyio.run(
        main,
        *(doors.find(options.door), options.url, options.folder, options.first, options.calls, options.callers),
    )
