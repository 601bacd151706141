"""One command within bounds: a deadline, so much output, and at the end nothing of it is left running."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

_GRACE = 2.0
"""Seconds between asking to end, when git removes its lock files, and ending."""
_MESSAGES = 16_000
"""Bytes of stderr that are kept, half from its start and half from its end."""


class Overdue(Exception):
    """The command did not end in time, and was ended."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended and what it wrote; `omitted` bytes are missing between the head and the tail of its output."""

    code: int
    head: bytes
    tail: bytes
    omitted: int
    messages: bytes


class Excerpt:
    """The first and the last bytes of a stream, however long it is."""

    def __init__(self, head: int, tail: int) -> None:
        self._bounds = head, tail
        self._head = bytearray()
        self._rest = bytearray()
        self.omitted = 0

    def feed(self, chunk: bytes) -> None:
        head, tail = self._bounds
        room = head - len(self._head)
        self._head += chunk[:room]
        self._rest += chunk[room:]
        # Twice as much as is wanted, so that not every chunk moves all of it.
        if len(self._rest) > 2 * tail:
            self._trim()

    def parts(self) -> tuple[bytes, bytes]:
        if len(self._rest) > self._bounds[1]:
            self._trim()
        return bytes(self._head), bytes(self._rest)

    def _trim(self) -> None:
        surplus = len(self._rest) - self._bounds[1]
        del self._rest[:surplus]
        self.omitted += surplus


async def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    deadline: float,
    head: int,
    tail: int = 0,
    given: bytes = b"",
) -> Outcome:
    """Run a command in a session of its own, without a terminal; raises Overdue after `deadline` seconds."""
    output, messages = Excerpt(head, tail), Excerpt(_MESSAGES // 2, _MESSAGES // 2)
    process = await anyio.open_process(
        command,
        stdin=subprocess.PIPE if given else subprocess.DEVNULL,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    try:
        with anyio.fail_after(deadline):
            async with anyio.create_task_group() as tasks:
                if process.stdin:
                    tasks.start_soon(_give, process.stdin, given)
                for stream, excerpt in ((process.stdout, output), (process.stderr, messages)):
                    assert stream
                    tasks.start_soon(_collect, stream, excerpt)
            code = await process.wait()
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            await _end(process)
        if isinstance(error, TimeoutError):
            raise Overdue from None
        raise
    begin, end = output.parts()
    return Outcome(code, begin, end, output.omitted, b"".join(messages.parts()))


async def _give(stream: ByteSendStream, given: bytes) -> None:
    # Whoever ends before it has read all of its input says why on stderr.
    with contextlib.suppress(anyio.BrokenResourceError):
        await stream.send(given)
    await stream.aclose()


async def _collect(stream: ByteReceiveStream, excerpt: Excerpt) -> None:
    async for chunk in stream:
        excerpt.feed(chunk)


async def _end(process: Process) -> None:
    """End the command and all that it started."""
    _signal(process, signal.SIGTERM)
    with anyio.move_on_after(_GRACE):
        await process.wait()
    _signal(process, signal.SIGKILL)
    await process.aclose()


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
