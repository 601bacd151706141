"""What is in hand while an agent works on one request."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import anyio

from squidbot.core.domain.agent_events import AgentEvent, CallEnded, CallProgress, MessageKept, Step
from squidbot.core.domain.conversation import CallAsked, Message, ModelStop, TokenUsage, Turn

Emit: TypeAlias = Callable[[AgentEvent], None]
"""Hears of everything that happens; raises nothing, and takes no time."""

_APART = 0.1
"""Seconds between two words about the progress of one call."""
_LONGEST_WORD = 500


@dataclass(slots=True)
class Work:
    """The state of one run."""

    messages: list[Message]
    emit: Emit
    steps: list[Step] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)
    made: Counter[str] = field(default_factory=Counter)
    strikes: int = 0
    said: str = ""
    ended: list[CallEnded] = field(default_factory=list)
    """Calls of the step under way."""

    @property
    def step(self) -> int:
        return len(self.steps) + 1

    def keep(self, message: Message) -> None:
        self.messages.append(message)
        self.emit(MessageKept(message))

    def close_step(self, turn: Turn, order: Sequence[CallAsked]) -> None:
        place = {call.id: index for index, call in enumerate(order)}
        calls = sorted(self.ended, key=lambda call: place.get(call.id, len(place)))
        self.steps.append(Step(turn.text, tuple(calls), turn.usage))
        self.ended = []


@dataclass(slots=True)
class Heard:
    """What has come of a turn so far."""

    parts: list[str] = field(default_factory=list)
    calls: list[CallAsked] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)
    stop: ModelStop | None = None
    written: int = 0


class Following:
    """Satisfies `OnProgress`: tells how far one call is, never more often than eyes can follow, nor after its end."""

    def __init__(self, step: int, call: CallAsked, emit: Emit) -> None:
        self._step = step
        self._call = call
        self._emit = emit
        self._last = float("-inf")
        self._is_whole = False
        self.is_over = False

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        if self.is_over or not math.isfinite(progress):
            return
        bound = total if total is not None and math.isfinite(total) else None
        now = anyio.current_time()
        whole = not self._is_whole and bound is not None and progress >= bound
        if now - self._last < _APART and not whole:
            return
        self._last, self._is_whole = now, self._is_whole or whole
        words = None if message is None else message[:_LONGEST_WORD]
        self._emit(CallProgress(self._step, self._call.id, progress, bound, words))


def told_apart(calls: Sequence[CallAsked], step: int) -> tuple[CallAsked, ...]:
    """The calls with ids that differ: answers find their call by them."""
    seen: set[str] = set()
    apart = []
    for index, call in enumerate(calls):
        name = call.id if call.id and call.id not in seen else f"call_{step}_{index}_{len(seen)}"
        seen.add(name)
        apart.append(call if name == call.id else replace(call, id=name))
    return tuple(apart)


def canonical(arguments: str) -> str:
    """Arguments that mean the same, as the same text."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
