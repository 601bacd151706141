"""The deadlines of all that is under way on one connection, with one timer: nearly all are met, and long before.

A deadline works like `asyncio.timeout`: whoever is late is cancelled, and the cancellation leaves the context as a TimeoutError.
"""

import asyncio
from math import inf
from types import TracebackType
from typing import Self


class Deadlines:
    """Those that have not been met yet."""

    def __init__(self) -> None:
        self._waiting: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf

    def within(self, seconds: float | None) -> "Deadline":
        """What is done in this context has so many seconds, or all the time there is."""
        return Deadline(self, inf if seconds is None else asyncio.get_running_loop().time() + seconds)

    def add(self, deadline: "Deadline") -> None:
        self._waiting[deadline] = None
        if deadline.when < self._due:
            self._look_at(deadline.when)

    def drop(self, deadline: "Deadline") -> None:
        self._waiting.pop(deadline, None)

    def moved(self, deadline: "Deadline") -> None:
        if deadline in self._waiting and deadline.when < self._due:
            self._look_at(deadline.when)

    def _look_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._look) if when < inf else None
        self._due = when

    def _look(self) -> None:
        self._timer, self._due = None, inf
        now = asyncio.get_running_loop().time()
        for late in [deadline for deadline in self._waiting if deadline.when <= now]:
            self.drop(late)
            late.pass_by()
        self._look_at(min((deadline.when for deadline in self._waiting), default=inf))


class Deadline:
    """One of them; the end of the context meets it."""

    __slots__ = ("_among", "_cancelling", "_task", "is_past", "when")

    def __init__(self, among: Deadlines, when: float) -> None:
        self._among = among
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self.when = when
        """On the loop's clock."""
        self.is_past = False

    def __enter__(self) -> Self:
        task = self._task = asyncio.current_task()
        if task is not None:
            self._cancelling = task.cancelling()
        self._among.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._among.drop(self)
        task, self._task = self._task, None
        if (
            self.is_past
            and task is not None
            and task.uncancel() <= self._cancelling
            and isinstance(error, asyncio.CancelledError)
        ):
            raise TimeoutError from error

    def move(self, seconds: float) -> None:
        """Put it off, or, with fewer than none, closer; what is past stays so."""
        if not self.is_past:
            self.when += seconds
            self._among.moved(self)

    def pass_by(self) -> None:
        """It is past: whoever is late is cancelled."""
        self.is_past = True
        if self._task is not None:
            self._task.cancel()
