"""The agent: a model that is given tools, asked again with what they answered, and ended at its bounds.

It knows no provider and no MCP: only the ports, and the guarded door behind its toolbox.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from squidbot.core.domain.agent_events import (
    AgentRun,
    Bounds,
    CallBegan,
    CallEnded,
    Done,
    Noted,
    StopReason,
    TextSaid,
    TurnVoid,
    UsageTold,
)
from squidbot.core.domain.conversation import (
    CallAsked,
    Message,
    ModelEvent,
    ModelMessage,
    ModelNote,
    Restarted,
    Stopped,
    TextDelta,
    TokenUsage,
    ToolMessage,
    Turn,
    UserMessage,
    answered,
)
from squidbot.core.domain.errors import ModelError, NotRecorded, SquidbotError
from squidbot.core.domain.text import paired
from squidbot.core.ports import LanguageModel
from squidbot.core.services.agent_tools import Made, Toolbox
from squidbot.core.services.agent_work import Emit, Following, Heard, Work, canonical, told_apart

_LONGEST_TURN = 4_000_000
"""Characters that a model may write in one turn: one that never stops is ended."""
_MOST_CALLS = 1_000
_CLOSING = 5.0
"""Seconds in which a model's connection must be closed."""
_STRIKES = 2
"""Turns with calls that were made too often already, after which the run ends."""


class AgentLoop:
    """An agent of one caller: give it a request, and it works until it has an answer or reaches a bound."""

    def __init__(self, model: LanguageModel, toolbox: Toolbox, *, bounds: Bounds, system: str = "") -> None:
        self._model = model
        self._toolbox = toolbox
        self._bounds = bounds
        self._system = system

    async def run(self, text: str, *, emit: Emit, history: Sequence[Message] = ()) -> AgentRun:
        """Work on a request. Raises nothing but cancellation, after which every call that was begun has its record."""
        work = Work(answered(history), emit)
        self._toolbox.took(work.messages)
        work.keep(UserMessage(text))
        reason: StopReason = "time"
        error: SquidbotError | None = None
        try:
            with anyio.move_on_after(self._bounds.seconds):
                reason = await self._turns(work)
        except anyio.get_cancelled_exc_class():
            emit(Done("cancelled", work.said))
            raise
        except SquidbotError as failure:
            reason, error = "error", failure
        emit(Done(reason, work.said, None if error is None else str(error)))
        return AgentRun(work.said, reason, tuple(work.steps), work.usage, error)

    async def _turns(self, work: Work) -> StopReason:
        while True:
            turn = await self._turn(work)
            work.said = turn.text or work.said
            work.usage += turn.usage
            work.emit(UsageTold(work.step, work.usage))
            if turn.text or turn.calls:
                work.keep(ModelMessage(turn.text, turn.calls))
            reason = self._ended_by(work, turn)
            if reason is not None:
                work.close_step(turn, ())
                return reason
            refusals = self._too_often(work, turn.calls)
            if work.strikes >= _STRIKES:
                work.close_step(turn, ())
                return "repeats"
            try:
                answers = await self._calls(work, turn.calls, refusals)
            finally:
                work.close_step(turn, turn.calls)
            for answer in answers:
                work.keep(answer)
            self._toolbox.took(answers)

    def _ended_by(self, work: Work, turn: Turn) -> StopReason | None:
        """Why no calls of this turn are made; None if they are. Raises ModelError if the model said nothing at all."""
        if turn.stop == "refused":
            return "refused"
        if not turn.calls:
            if not turn.text.strip():
                raise ModelError("the model ended its turn without a word", kind="broken", hint="Try another model.")
            return "length" if turn.stop == "length" else "answered"
        if self._bounds.tokens is not None and work.usage.total >= self._bounds.tokens:
            return "tokens"
        return "steps" if work.step >= self._bounds.steps else None

    # The model

    async def _turn(self, work: Work) -> Turn:
        heard = Heard()
        async with _events(self._request(work)) as events:
            async for event in events:
                self._hear(work, heard, event)
                if heard.written > _LONGEST_TURN or len(heard.calls) > _MOST_CALLS:
                    raise ModelError("the model wrote without an end, and was stopped", kind="broken")
        usage = heard.usage
        if not usage.total:
            # A model that does not count is counted by the rule of thumb, so that the bound on tokens holds.
            read = sum(len(str(message)) for message in work.messages) + len(self._system)
            usage = TokenUsage(read // 4 + 1, heard.written // 4 + 1)
        return Turn(paired("".join(heard.parts)), told_apart(heard.calls, work.step), usage, heard.stop)

    def _hear(self, work: Work, heard: Heard, event: ModelEvent) -> None:
        match event:
            case TextDelta(text=text):
                heard.parts.append(text)
                heard.written += len(text)
                work.emit(TextSaid(work.step, text))
            case CallAsked():
                heard.calls.append(event)
                heard.written += len(event.arguments)
            case TokenUsage():
                heard.usage += event
            case Stopped(reason=reason):
                heard.stop = reason
            case Restarted(reason=reason):
                heard.parts, heard.calls, heard.stop = [], [], None
                work.emit(TurnVoid(work.step, reason))
            case ModelNote(text=text):
                work.emit(Noted(text))

    def _request(self, work: Work) -> AsyncIterator[ModelEvent]:
        left = None if self._bounds.tokens is None else max(self._bounds.tokens - work.usage.total, 1)
        return self._model.stream(
            tuple(work.messages), system=self._system, tools=self._toolbox.offered(), max_tokens=left
        )

    # The calls

    def _too_often(self, work: Work, calls: Sequence[CallAsked]) -> list[str | None]:
        """For each call, why it is not made once more; a turn with such a call is a strike."""
        found: list[str | None] = []
        striking = False
        for index, call in enumerate(calls):
            same = f"{call.name} {canonical(call.arguments)}"
            work.made[same] += 1
            if work.made[same] > self._bounds.repeats:
                striking = True
                found.append(
                    f"this very call was made {self._bounds.repeats} times already, and its answers are above: "
                    "do something else, or answer with what you have"
                )
            elif index >= self._bounds.calls:
                found.append(f"not more than {self._bounds.calls} calls are made in one turn; ask for it in the next")
            else:
                found.append(None)
        work.strikes += striking
        return found

    async def _calls(self, work: Work, calls: Sequence[CallAsked], refusals: Sequence[str | None]) -> list[ToolMessage]:
        """Make the calls of one turn side by side; their answers in the order in which they were asked for."""
        answers: dict[str, ToolMessage] = {}
        unrecorded: list[NotRecorded] = []

        async def one(call: CallAsked, refusal: str | None) -> None:
            try:
                answers[call.id] = (await self._call(work, call, refusal)).message
            except NotRecorded as error:
                unrecorded.append(error)

        async with anyio.create_task_group() as tasks:
            for call, refusal in zip(calls, refusals, strict=True):
                tasks.start_soon(one, call, refusal)
        if unrecorded:
            raise unrecorded[0]
        return [answers[call.id] for call in calls]

    async def _call(self, work: Work, call: CallAsked, refusal: str | None) -> Made:
        step, began = work.step, anyio.current_time()
        work.emit(CallBegan(step, call.id, call.name, call.arguments))
        following = Following(step, call, work.emit)

        def ended(made: Made | None, words: str = "") -> None:
            following.is_over = True
            told = CallEnded(
                step=step,
                id=call.id,
                name=made.message.name if made else call.name,
                arguments=call.arguments,
                tool=made.tool if made else None,
                outcome=made.outcome if made else "cancelled",
                seconds=round(anyio.current_time() - began, 6),
                record=made.record if made else None,
                text=made.text if made else words,
            )
            work.ended.append(told)
            work.emit(told)

        try:
            made = await self._toolbox.make(call, refusal=refusal, on_progress=following)
        except anyio.get_cancelled_exc_class():
            ended(None, "stopped before it was answered")
            raise
        except NotRecorded as error:
            ended(None, str(error))
            raise
        ended(made)
        return made


@asynccontextmanager
async def _events(stream: AsyncIterator[ModelEvent]) -> AsyncIterator[AsyncIterator[ModelEvent]]:
    """A model's events, closed when done with; whatever else than a ModelError it raises is made one."""
    try:
        yield stream
    except (SquidbotError, anyio.get_cancelled_exc_class()):
        raise
    except Exception as error:
        raise ModelError(f"the model failed inside squidbot: {type(error).__name__}", kind="broken") from error
    finally:
        close: Any = getattr(stream, "aclose", None)
        if close is not None:
            with anyio.move_on_after(_CLOSING, shield=True):
                await close()
