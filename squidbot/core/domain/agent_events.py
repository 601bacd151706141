"""What happens while an agent works, for whoever watches, and what a run came to."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from squidbot.core.domain.audit import Outcome
from squidbot.core.domain.conversation import Message, TokenUsage
from squidbot.core.domain.errors import SquidbotError
from squidbot.core.domain.tools import ToolId

StopReason: TypeAlias = Literal[
    "answered", "steps", "time", "tokens", "repeats", "length", "refused", "cancelled", "error"
]
"""Why a run ended: with an answer, at one of its bounds, cut off or refused by the model, stopped, or by a failure."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one request may take before it is ended."""

    steps: int = 25
    seconds: float = 600.0
    tokens: int | None = None
    repeats: int = 3
    """How often the very same call is made; one more time it is refused, and after that the run ends."""
    calls: int = 32
    """In one turn."""


@dataclass(frozen=True, slots=True)
class TextSaid:
    """A few more words of the model's."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class CallBegan:
    """The model asked for a call, and it is being made."""

    step: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a call has come, as its server says; told now and then, for eyes alone."""

    step: int
    id: str
    progress: float
    total: float | None
    message: str | None


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call is over, and recorded."""

    step: int
    id: str
    name: str
    arguments: str
    tool: ToolId | None
    outcome: Outcome
    seconds: float
    record: str | None
    text: str
    """What the model is told, without the marks around it."""


@dataclass(frozen=True, slots=True)
class UsageTold:
    """What the run has used up so far."""

    step: int
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class TurnVoid:
    """The words of this step so far are void: the model begins the turn anew."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class Noted:
    """What a person should know."""

    text: str


@dataclass(frozen=True, slots=True)
class MessageKept:
    """A message is complete and part of the conversation from here on."""

    message: Message


@dataclass(frozen=True, slots=True)
class Done:
    """The run is over."""

    reason: StopReason
    answer: str
    error: str | None = None


AgentEvent: TypeAlias = (
    TextSaid | CallBegan | CallProgress | CallEnded | UsageTold | TurnVoid | Noted | MessageKept | Done
)


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the model, and the calls that it asked for."""

    text: str
    calls: tuple[CallEnded, ...]
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What a request came to."""

    answer: str
    stop_reason: StopReason
    steps: tuple[Step, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)
    error: SquidbotError | None = None

    @property
    def records(self) -> tuple[str, ...]:
        """The ids of the records of all calls, in the order in which they were asked for."""
        return tuple(call.record for step in self.steps for call in step.calls if call.record is not None)
