"""The person at the terminal. All they type is read by the main thread; work goes on in another, which asks through it."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from squidbot.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

    from anyio.from_thread import BlockingPortal

    from squidbot.cli.invocation import Invocation
    from squidbot.core.services.counterpart import AgentCounterpart

T = TypeVar("T")
_MOST_HISTORY = 1_000


class Ended(KeyboardInterrupt):
    """Somebody wants the whole program to end (SIGTERM), not only what it is doing."""


@dataclass(frozen=True, slots=True)
class _Asked:
    question: str
    answer: Callable[[str | None], None]


class TerminalPerson:
    """Satisfies `Person`: asks in the main thread whatever is asked in the thread that works."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._inbox: SimpleQueue[_Asked | KeyboardInterrupt | None] = SimpleQueue()
        self._stop: KeyboardInterrupt | None = None
        """An interrupt that nobody has heeded yet."""
        self._is_interruptible = False

    @property
    def is_there(self) -> bool:
        """Whether somebody can read a question and answer it."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def tell(self, text: str) -> None:
        self._output.note(text)

    async def ask(self, question: str) -> str | None:
        """Called where the work is done."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[str | None] = loop.create_future()

        def answer(text: str | None) -> None:
            def give() -> None:
                if not reply.done():
                    reply.set_result(text)

            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(give)

        self._inbox.put(_Asked(question, answer))
        return await reply

    async def approve(self, reason: str) -> bool:
        """Whether the person lets something happen that is blocked otherwise."""
        self.tell(f"Careful: {reason}.")
        answer = await self.ask("Let it happen? [y/N]")
        return answer is not None and answer.strip().lower() in ("y", "yes")

    def wait_for(self, portal: "BlockingPortal", work: "Callable[[], Coroutine[Any, Any, T]]") -> T:
        """Do `work` in the portal's thread and answer its questions meanwhile.

        Raises KeyboardInterrupt if Ctrl-C stops it, Ended if SIGTERM does. Either way it is over then: what was begun is closed.
        """
        # What was asked for work that was stopped is nobody's question any more.
        inbox = self._inbox = SimpleQueue()
        self._heed()
        scope = portal.call(anyio.CancelScope)

        async def scoped() -> list[T]:
            with scope:
                return [await work()]
            return []

        running: Future[list[T]] = portal.start_task_soon(scoped)
        running.add_done_callback(lambda _: inbox.put(None))
        stop: KeyboardInterrupt | None = None
        while (asked := inbox.get()) is not None:
            if isinstance(asked, KeyboardInterrupt):
                stop, self._stop = asked, None
                portal.call(scope.cancel)
            elif stop is None:
                self._put(asked)
        done = running.result()
        if stop is not None or not done:
            raise stop or KeyboardInterrupt
        return done[0]

    @contextmanager
    def at_work(self) -> "Iterator[BlockingPortal]":
        """A thread for the work. Ctrl-C and SIGTERM are heeded where something is waited for, and nowhere between.

        By itself an exception may come anywhere, also where that other thread is started or ended, and then nobody ends it.
        """
        from anyio.from_thread import start_blocking_portal

        with _heeding(self._interrupted), start_blocking_portal() as portal:
            yield portal

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """An interrupt may come as an exception meanwhile, once."""
        try:
            self._is_interruptible = True
            self._heed()
            yield
        finally:
            self._is_interruptible = False

    def _interrupted(self, stop: KeyboardInterrupt) -> None:
        if self._is_interruptible:
            self._is_interruptible = False
            raise stop
        self._stop = stop
        self._inbox.put(stop)

    def _heed(self) -> None:
        """Raise the interrupt that came when nobody waited for one."""
        if self._stop is not None:
            stop, self._stop = self._stop, None
            raise stop

    def typed(self, prompt: str) -> str:
        """A line that the person types, asked for where they see it and no answer goes. Raises EOFError, KeyboardInterrupt."""
        with self.interruptible():
            if sys.stdout.isatty():
                return input(prompt)
            sys.stderr.write(prompt)
            sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line.removesuffix("\n")

    def _put(self, asked: _Asked) -> None:
        """Ask it; nobody answers what somebody breaks off."""
        with self._output.undisturbed():
            try:
                text: str | None = self.typed(f"{self._output.clean(asked.question)} ")
            except EOFError:
                text = None
            except KeyboardInterrupt as stop:
                self._inbox.put(stop)
                return
        asked.answer(text)


def at_terminal(call: "Invocation", person: TerminalPerson) -> "AgentCounterpart":
    """Who answers what servers ask during a command: the person if there is one, the settings' model for who may ask it."""
    from squidbot.core.services.counterpart import AgentCounterpart
    from squidbot.core.services.sampling import Sampler, SamplingBudget

    container, settings = call.container, call.settings
    container.roots.override([Path.cwd()])
    container.converses.override(True)  # noqa: FBT003 - a provider's value
    allowed = {name: entry.sampling for name, entry in settings.tools.mcp_servers.items() if entry.sampling is not None}
    sampler = None
    if allowed and settings.model is not None:
        folder = settings.source.parent if settings.source else None
        model = container.language_model(settings.model, folder=folder)
        budgets = {name: SamplingBudget(entry.requests, entry.tokens) for name, entry in allowed.items()}
        sampler = Sampler(model, budgets)
    somebody = person if person.is_there and not call.json else None
    return AgentCounterpart(f"cli:{os.getpid()}", sampler=sampler, person=somebody)


def run_with_person(person: TerminalPerson, work: "Callable[[], Coroutine[Any, Any, T]]") -> T:
    """Do `work` to its end, with the person at hand, or until somebody interrupts; either way all it opened is closed."""
    with person.at_work() as portal:
        return person.wait_for(portal, work)


@contextmanager
def line_editing(history: Path) -> Iterator[None]:
    """Lines that can be edited, and those of earlier conversations with the arrow keys; plain lines where that is not there."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_history_length(_MOST_HISTORY)
    with suppress(OSError):
        readline.read_history_file(history)
    try:
        yield
    finally:
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(history, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(history)


@contextmanager
def _heeding(stop: Callable[[KeyboardInterrupt], None]) -> Iterator[None]:
    """Let `stop` decide what Ctrl-C and SIGTERM do meanwhile."""

    def heed(number: int, _frame: object) -> None:
        stop(Ended() if number == signal.SIGTERM else KeyboardInterrupt())

    before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
