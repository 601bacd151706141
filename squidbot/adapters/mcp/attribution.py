"""Whose call a server's question or log message belongs to: somebody's only when that is certain.

What comes on the stream of one call, or as its answer, is that call's. Anything else is somebody's only if all calls
under way on the connection are theirs. Who it is for is decided when a message arrives, before whatever comes after it
can end a call, and travels beside the message to whoever handles it.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import anyio

from squidbot.adapters.mcp.deadlines import Deadline
from squidbot.core.ports import Counterpart

RequestId = int | str
QUESTIONS = frozenset({"sampling/createMessage", "elicitation/create"})
LOG = "notifications/message"
_LINGERS = 30.0
"""Seconds for which a server may still be busy with a call that nobody waits for any more."""
_MOST_LINGERING = 256
_PATIENCE = 600.0
"""Seconds for which a call's own time may stand still while somebody thinks about a question."""
_HEARING = 1.0
"""Seconds for which an answer waits for the log messages that came before it to be heard."""


@dataclass(frozen=True, slots=True)
class Addressee:
    """Who is to hear something: a counterpart; or, for a `reason`, nobody; or else whoever the program itself has."""

    counterpart: Counterpart | None = None
    reason: str | None = None
    call: "Call | None" = None


NOBODY = Addressee()
_concerned: ContextVar[Addressee] = ContextVar("concerned", default=NOBODY)


def concerned() -> Addressee:
    """Whom the message concerns that is being handled."""
    return _concerned.get()


@contextmanager
def concerning(addressee: Addressee) -> Iterator[None]:
    """Handle a message that concerns somebody."""
    before = _concerned.set(addressee)
    try:
        yield
    finally:
        _concerned.reset(before)
        if addressee.call is not None:
            addressee.call.told()


class Call:
    """One call under way, from its first request to its answer, and who waits for it."""

    __slots__ = ("_among", "_expected", "_heard", "_limits", "counterpart")

    def __init__(self, counterpart: Counterpart | None, among: "UnderWay") -> None:
        self.counterpart = counterpart
        self._among = among
        self._limits: list[Deadline] = []
        self._expected = 0
        self._heard: asyncio.Event | None = None

    async def __aenter__(self) -> Self:
        self._among.calls[self] = None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._expected:
                await self._all_heard()
        finally:
            self._among.ended(self, error)

    @property
    def owner(self) -> str | None:
        return None if self.counterpart is None else self.counterpart.owner

    @property
    def own(self) -> Addressee:
        """The addressee of what is certainly this call's."""
        return NOBODY if self.counterpart is None else Addressee(self.counterpart)

    def extend(self, seconds: float) -> None:
        """Give the server so much longer."""
        for limit in self._limits:
            limit.move(seconds)

    def asks(self, request_id: RequestId) -> None:
        """A request of this call is on its way, until `answered`."""
        self._among.requests[request_id] = self

    def limit(self, limit: Deadline) -> None:
        """The request has a deadline."""
        self._limits.append(limit)

    def met(self) -> None:
        """The deadline was met, and cannot be moved any more."""
        self._limits.clear()

    def answered(self, request_id: RequestId) -> None:
        """It is over, and its deadline with it."""
        del self._among.requests[request_id]
        self._limits.clear()

    def expect(self) -> Addressee:
        """Something for this call has come, and `told` will be called when it was heard."""
        self._expected += 1
        return Addressee(self.counterpart, call=self)

    def told(self) -> None:
        self._expected -= 1
        if self._expected == 0 and self._heard is not None:
            self._heard.set()

    async def _all_heard(self) -> None:
        """Wait a moment, so that what was said during a call is heard before its answer."""
        self._heard = asyncio.Event()
        with anyio.move_on_after(_HEARING):
            await self._heard.wait()


class _Asked:
    """A question that somebody thinks about, and the calls for which it may be."""

    def __init__(self, calls: set[Call], scope: anyio.CancelScope) -> None:
        self.scope = scope
        self._calls = calls

    def ended(self, call: Call | None) -> None:
        """A call is over; without any there is nothing left to ask for."""
        if call is not None:
            self._calls.discard(call)
        if not self._calls:
            self.scope.cancel()


class UnderWay:
    """All calls of one connection."""

    def __init__(self) -> None:
        self.declined = 0
        """Questions that nobody could be asked."""
        self.calls: dict[Call, None] = {}
        self.requests: dict[RequestId, Call] = {}
        """Of calls that have somebody at their other end."""
        self._asked: list[_Asked] = []
        self._lingering: deque[tuple[float, str | None]] = deque(maxlen=_MOST_LINGERING)

    def call(self, counterpart: Counterpart | None) -> Call:
        """A call, to be entered and left."""
        return Call(counterpart, self)

    def ended(self, call: Call, error: BaseException | None) -> None:
        """A call is over for us; if it was given up, the server was told, which does not mean that it has stopped."""
        del self.calls[call]
        if isinstance(error, asyncio.CancelledError) or getattr(error, "kind", None) == "timeout":
            self._lingering.append((asyncio.get_running_loop().time() + _LINGERS, call.owner))
        for question in self._asked:
            question.ended(call)

    def limit(self, request_id: RequestId, limit: Deadline) -> None:
        """Whatever is asked of a person during the call of this request, their time is not the server's."""
        call = self.requests.get(request_id)
        if call is not None:
            call.limit(limit)

    def met(self, request_id: RequestId) -> None:
        """It has come in time."""
        call = self.requests.get(request_id)
        if call is not None:
            call.met()

    @contextmanager
    def asking(self, counterpart: Counterpart) -> Iterator[None]:
        """Somebody is asked: meanwhile the deadlines of their calls stand still. With the last of them the question ends."""
        now = asyncio.get_running_loop().time
        began, calls = now(), [call for call in self.calls if call.owner == counterpart.owner]
        question = _Asked(set(calls), anyio.CancelScope())
        self._asked.append(question)
        for call in calls:
            call.extend(_PATIENCE)
        try:
            with question.scope:
                question.ended(None)
                yield
        finally:
            self._asked.remove(question)
            for call in calls:
                call.extend(min(now() - began, _PATIENCE) - _PATIENCE)

    def whose(self, request_id: RequestId | None = None, *, is_log: bool = False) -> Addressee:
        """Whom something concerns that has just come, on the stream of `request_id` if it came on one's."""
        found = self.requests.get(request_id) if request_id is not None else self._only_owners()
        if isinstance(found, str):
            return Addressee(reason=found)
        if found is None or found.counterpart is None:
            return NOBODY
        return found.expect() if is_log else found.own

    def _only_owners(self) -> Call | str | None:
        """A call of the one who has all that are under way; why there is none, if there are several."""
        if not any(call.counterpart is not None for call in self.calls):
            return None
        now = asyncio.get_running_loop().time()
        while self._lingering and self._lingering[0][0] < now:
            self._lingering.popleft()
        owners = {call.owner for call in self.calls}.union(owner for _, owner in self._lingering)
        if len(owners) > 1:
            return (
                "it is not certain whose call this belongs to: "
                f"calls of {len(owners)} callers are under way on the connection, and the message names none"
            )
        return next(reversed(self.calls))
