"""One process in which schemas are checked, seen from squidbot: started, asked within a budget, killed."""

import json
import marshal
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from squidbot.adapters.schemas import worker
from squidbot.core.domain.errors import Problem
from squidbot.core.domain.recent import Recent

_LARGEST_ANSWER = 4 * 1024 * 1024
_CHUNK = 65_536
_PLAIN_FORMAT = 2
"""Of `marshal`: the last one in which equal values are equal bytes, since it has no references."""
_ROOT = str(Path(__file__).parents[3])
_ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All of ours that a worker gets: what Python itself may need to start. The rest has secrets in it."""


class TooSlow(Exception):
    """A check took more than its time."""


class TooLarge(Exception):
    """A schema or a value cannot be handed to a worker; the text says why."""


class WorkerLost(Exception):
    """A worker ended, or never began; the text says how."""


class Worker:
    """A process and the socket to it. Between two checks it belongs to no event loop."""

    def __init__(self, process: "subprocess.Popen[bytes]", line: socket.socket) -> None:
        self._process = process
        self._line = line
        self._inbox = bytearray()
        self._learnt: Recent[bytes, bytes] = Recent(worker.SCHEMAS)
        # No worker outlives the object that stands for it, whether or not somebody remembers to stop it.
        self._end = weakref.finalize(self, _end, process, line)

    @classmethod
    def start(cls) -> "Worker":
        """Start a process; `ready` waits until it can be asked. Raises WorkerLost."""
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                process = _spawn(ours, theirs)
        except OSError as error:
            raise WorkerLost(f"could not be started: {error.strerror}") from None
        ours.settimeout(0)
        return cls(process, ours)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    async def ready(self) -> None:
        """Wait until it can be asked. Raises WorkerLost."""
        await self._receive()

    async def check(
        self, digest: bytes, schema: Mapping[str, Any], value: bytes, *, budget: float
    ) -> tuple[Problem, ...]:
        """All that does not fit in a packed value. Raises TooSlow or WorkerLost, and is then of no more use."""
        learnt = self._learnt.get(digest) is not None
        answer = None
        # To learn a schema is work of its own, done once.
        with anyio.move_on_after(budget if learnt else 2 * budget):
            await self._send(marshal.dumps((digest, None if learnt else dict(schema))))
            await self._send(value)
            answer = await self._receive()
        if answer is None:
            # Perhaps it was our own loop that was late.
            answer = self._arrived()
        if answer is None:
            raise TooSlow
        self._learnt.put(digest, digest)
        return tuple(Problem(path, message, hint) for path, message, hint in json.loads(answer))

    async def stop(self) -> None:
        """Kill it, and wait until it is gone."""
        self._process.kill()
        with anyio.CancelScope(shield=True):
            try:
                await anyio.to_thread.run_sync(self._end)
            except RuntimeError:  # there is no thread to wait in
                self._end()

    async def _send(self, body: bytes) -> None:
        for data in (worker.LENGTH.pack(len(body)), body):
            left = memoryview(data)
            while left:
                try:
                    left = left[self._line.send(left) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._line)
                except OSError:
                    raise WorkerLost("ended before it was asked") from None

    async def _receive(self) -> bytes:
        while (body := self._arrived()) is None:
            await anyio.wait_readable(self._line)
        return body

    def _arrived(self) -> bytes | None:
        """The body of the answer, if all of it has come."""
        try:
            while chunk := self._line.recv(_CHUNK):
                self._inbox += chunk
                if len(self._inbox) > _LARGEST_ANSWER:
                    raise WorkerLost("answered more than anybody can read")
            raise WorkerLost("ended before it answered")
        except BlockingIOError:
            pass
        except OSError:
            raise WorkerLost("ended before it answered") from None
        start = worker.LENGTH.size
        if len(self._inbox) < start or len(self._inbox) < start + worker.LENGTH.unpack_from(self._inbox)[0]:
            return None
        body = bytes(self._inbox[start:])
        self._inbox.clear()
        return body


def packed(value: Any, largest: int) -> bytes:
    """A value as workers read it. Raises TooLarge.

    Not as JSON: this takes a tenth of the time, which is the event loop's, and is exact about whatever Python can hold.
    """
    try:
        body = marshal.dumps(value, _PLAIN_FORMAT)
    except ValueError:
        raise TooLarge("is nested too deeply, or not made of what JSON is made of") from None
    if len(body) > largest:
        raise TooLarge(f"takes more than {largest >> 20} MB")
    return body


def _spawn(ours: socket.socket, theirs: socket.socket) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            # Isolated from folders and variables of the day; it imports from where we did, ourselves included.
            [sys.executable, "-I", "-S", worker.__file__, *filter(None, sys.path), _ROOT],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            # An interrupt at the terminal is for squidbot, which may still have checks to make.
            start_new_session=True,
        )
    except BaseException:
        ours.close()
        raise


def _end(process: "subprocess.Popen[bytes]", line: socket.socket) -> None:
    line.close()
    process.kill()
    process.wait()
