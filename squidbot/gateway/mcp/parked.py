"""Calls of clients of the stateless era that wait for an answer of theirs, while a server of the other era waits too.

Such a server asks in the middle of a call; such a client is asked by the answer to its request. So the call is kept, its
request is answered with the question, and the next request goes on with it: here, and for this caller only.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup

from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.domain.tools import ToolResult
from squidbot.gateway.mcp.results import INPUT_REQUIRED
from squidbot.gateway.mcp.visit import Line, NoLine

_MOST = 1_000


@dataclass(slots=True)
class _Question:
    request: Mapping[str, Any]
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Mapping[str, Any] | None = None


class _Call:
    """Satisfies `Line`: one call, and whoever waits for it at the moment."""

    def __init__(self, answer_within: float) -> None:
        self.line: Line = NoLine()
        self.questions: dict[str, _Question] = {}
        self.scope = anyio.CancelScope()
        self.result: ToolResult | None = None
        self.error: Exception | None = None
        self.is_over = False
        self.changed = anyio.Event()
        self._answer_within = answer_within

    def notify(self, method: str, params: Mapping[str, Any] | None) -> bool:
        return self.line.notify(method, params)

    async def settled(self) -> None:
        return

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        question = _Question({"method": method, "params": dict(params)})
        name = f"{method.partition('/')[0]}-{secrets.token_hex(4)}"
        self.questions[name] = question
        self.changed.set()
        with anyio.move_on_after(self._answer_within):
            await question.answered.wait()
        self.questions.pop(name, None)
        return question.answer

    def answer(self, given: Mapping[str, Any]) -> None:
        """Take what the client came back with; what it left out is asked again."""
        for name, question in list(self.questions.items()):
            found = given.get(name)
            if isinstance(found, Mapping):
                question.answer = found
                question.answered.set()
                del self.questions[name]


class Parked:
    """The calls that wait in this process."""

    def __init__(self, options: EndpointOptions) -> None:
        self.tasks: TaskGroup | None = None
        """In which calls go on while nobody waits for them."""
        self._options = options
        self._calls: dict[str, _Call] = {}

    async def begin(self, line: Line, work: Callable[[Line], Awaitable[ToolResult]]) -> ToolResult:
        """The result of a call, or the question that must be answered first."""
        if self.tasks is None or len(self._calls) >= _MOST:
            return await work(line)
        call = _Call(self._options.answer_within)
        self.tasks.start_soon(self._run, call, work)
        return await self._wait(call, line)

    async def go_on(self, name: str, line: Line, given: Mapping[str, Any]) -> ToolResult | None:
        """Go on with a call that waits; None if there is none of this name."""
        call = self._calls.pop(name, None)
        if call is None:
            return None
        call.answer(given)
        return await self._wait(call, line)

    async def _run(self, call: _Call, work: Callable[[Line], Awaitable[ToolResult]]) -> None:
        try:
            with call.scope:
                call.result = await work(call)
        except Exception as error:  # noqa: BLE001  it is raised again where somebody waits
            call.error = error
        finally:
            call.is_over = True
            call.changed.set()

    async def _wait(self, call: _Call, line: Line) -> ToolResult:
        call.line = line
        try:
            while not call.is_over:
                if call.questions:
                    return self._park(call)
                call.changed = anyio.Event()
                await call.changed.wait()
        except anyio.get_cancelled_exc_class():
            call.scope.cancel()
            raise
        finally:
            call.line = NoLine()
        if call.error is not None:
            raise call.error
        return call.result or ToolResult.failed("the call was given up", "server")

    def _park(self, call: _Call) -> ToolResult:
        name = secrets.token_urlsafe(18)
        self._calls[name] = call
        if self.tasks is not None:
            self.tasks.start_soon(self._forget, name)
        requests = {key: question.request for key, question in call.questions.items()}
        return ToolResult(
            raw={"resultType": INPUT_REQUIRED, "inputRequests": requests, "requestState": name, _PARKED: True}
        )

    async def _forget(self, name: str) -> None:
        """A client that does not come back does not keep a server waiting for ever."""
        await anyio.sleep(self._options.answer_within)
        call = self._calls.pop(name, None)
        if call is not None:
            call.scope.cancel()


_PARKED = "squidbot/parked"


def is_parked(said: Mapping[str, Any]) -> bool:
    """Whether a question is our own, for a call that waits here, and takes the mark off."""
    return isinstance(said, dict) and said.pop(_PARKED, False) is True
