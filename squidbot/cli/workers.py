"""Several processes that serve one address: a parent starts them, replaces those that die, and passes signals on."""

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from squidbot.cli.errors import CommandError
from squidbot.cli.exits import DONE, FAILED, INTERRUPTED
from squidbot.cli.invocation import Invocation

if TYPE_CHECKING:
    from squidbot.config.schema import Settings

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_BEAT: Final = 0.1
_FIRST_REST: Final = 0.5
_LONGEST_REST: Final = 10.0
_STEADY: Final = 30.0
"""Seconds after which a worker that dies is replaced at once."""
_LAST: Final = 20.0
"""Seconds for workers to end by themselves."""


def check_shared(settings: "Settings", workers: int) -> None:
    """Raise CommandError if several workers would each count limits for themselves."""
    if workers > 1 and settings.redis is None:
        raise CommandError(
            f"{workers} workers would each count calls for themselves, and let through {workers} times the limits",
            code="settings",
            hint='They count together in Redis: add "redis": "redis://127.0.0.1:6379/0" to the settings.',
        )


def inherited(worker: tuple[int, int, int]) -> tuple[socket.socket, Callable[[str | None], None]]:
    """What a worker has of its parent: the socket, and whom to tell that it is ready. It ends when the parent does."""
    listening, telling, lifeline = worker

    def watch() -> None:
        os.read(lifeline, 1)  # nothing ever comes but the end
        os.kill(os.getpid(), signal.SIGTERM)

    def ready(link: str | None) -> None:
        os.write(telling, (link or "-").encode())
        os.close(telling)

    threading.Thread(target=watch, daemon=True, name="lifeline").start()
    return socket.socket(fileno=listening), ready


def run_workers(call: Invocation, listeners: Sequence[socket.socket], ready: Callable[[str | None], None]) -> int:
    """Serve with a process for each of these sockets until a signal says to end."""
    crew = _Crew(_command(call))
    heard: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in _SIGNALS:
        signal.signal(number, lambda number, _: heard.put(number))
    try:
        for listener in listeners:
            crew.start(listener)
        return _attend(crew, heard, ready, say=call.output.note)
    finally:
        crew.end()


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    listener: socket.socket
    """Held here too: whoever connects while a worker is replaced waits for the next one."""
    began: float


@dataclass
class _Crew:
    """The workers that there are."""

    command: list[str]
    workers: list[_Worker] = field(default_factory=list)
    ready: int = 0
    link: str | None = None
    """Where the first that was ready signs an admin in."""
    _lifeline: tuple[int, int] = field(default_factory=os.pipe)
    _rest: float = _FIRST_REST

    def start(self, listener: socket.socket) -> None:
        told, tell = os.pipe()
        inherited = (listener.fileno(), tell, self._lifeline[0])
        options = ["--worker", *(str(number) for number in inherited)]
        # A session of its own: what is typed at the terminal comes from us, once.
        process = subprocess.Popen([*self.command, *options], pass_fds=inherited, start_new_session=True)
        os.close(tell)
        threading.Thread(target=self._hear, args=(told,), daemon=True).start()
        self.workers.append(_Worker(process, listener, time.monotonic()))

    def _hear(self, told: int) -> None:
        said = os.read(told, 4_096).decode()
        os.close(told)
        self.link = self.link or (said if said.startswith("http") else None)
        self.ready += bool(said)

    def pass_on(self, number: int) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.send_signal(number)

    def let_go(self) -> None:
        """Hold no socket any more: who connects to one that no worker has would wait for nobody."""
        for worker in self.workers:
            worker.listener.close()

    def replace_dead(self) -> list[int]:
        """The exit codes of those that ended, each of whom has a successor now."""
        dead = [worker for worker in self.workers if worker.process.poll() is not None]
        for worker in dead:
            self.workers.remove(worker)
            steady = time.monotonic() - worker.began > _STEADY
            self._rest = _FIRST_REST if steady else min(self._rest * 2, _LONGEST_REST)
            time.sleep(0 if steady else self._rest)
            self.start(worker.listener)
        return [worker.process.returncode for worker in dead]

    @property
    def living(self) -> int:
        return sum(worker.process.poll() is None for worker in self.workers)

    def end(self) -> None:
        """Whatever became of us, nobody is left."""
        os.close(self._lifeline[1])
        deadline = time.monotonic() + _LAST
        for worker in self.workers:
            try:
                worker.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        os.close(self._lifeline[0])


def _attend(
    crew: _Crew, heard: "queue.SimpleQueue[int]", ready: Callable[[str | None], None], *, say: Callable[[str], None]
) -> int:
    count, greeted, ending = len(crew.workers), False, 0
    while True:
        try:
            number = heard.get(timeout=_BEAT)
        except queue.Empty:
            number = 0
        if number:
            crew.pass_on(number)
            ending = ending or (number if number != signal.SIGHUP else 0)
            if ending:
                crew.let_go()
        if ending:
            if not crew.living:
                return INTERRUPTED if ending == signal.SIGINT else DONE
            continue
        if not greeted and crew.ready >= count:
            greeted = True
            ready(crew.link)
        if not greeted and crew.living < count:
            # One that cannot even start has said why; the others would not fare better.
            return next((w.process.returncode for w in crew.workers if w.process.returncode), FAILED)
        for code in crew.replace_dead():
            say(f"a worker ended with {code}; another takes its place")


def _command(call: Invocation) -> list[str]:
    command = [sys.executable, "-m", "squidbot", *(["--config", str(call.config)] if call.config else [])]
    return [*command, *["-v"] * max(call.verbosity, 0), "gateway"]
