"""A conversation with a language model as values: what was said, which calls were asked for, what they came to."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from squidbot.core.domain.content import Content, TextContent
from squidbot.core.domain.tools import ToolId


@dataclass(frozen=True, slots=True)
class CallAsked:
    """A tool call that a model asks for; `arguments` is the text as it came, which may be no JSON at all."""

    id: str
    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the person said."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """What the model said, and which calls it asked for in the same breath."""

    text: str
    calls: tuple[CallAsked, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """What a call came to, in the form in which the model is told."""

    call: str
    name: str
    content: tuple[Content, ...]
    is_error: bool = False
    tool: ToolId | None = None
    """Which tool was reached; None if none was."""


Message: TypeAlias = UserMessage | ModelMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class ModelTool:
    """A tool as a model is offered it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What was read and written by a model; `cost` in US dollars, None where nobody knows the price."""

    input: int = 0
    output: int = 0
    cost: float | None = None

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return TokenUsage(self.input + other.input, self.output + other.output, sum(known) if known else None)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A few more words of the model's."""

    text: str


ModelStop: TypeAlias = Literal["end", "calls", "length", "refused"]
"""Why a model stopped: it is done, it waits for calls, it ran out of room, it will not answer."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The model has stopped."""

    reason: ModelStop


@dataclass(frozen=True, slots=True)
class Restarted:
    """What came of this turn so far is void: the stream broke off, and the turn begins anew."""

    reason: str


@dataclass(frozen=True, slots=True)
class ModelNote:
    """What a person should know: a tool that was left out, a wait, another model that takes over."""

    text: str


ModelEvent: TypeAlias = TextDelta | CallAsked | TokenUsage | Stopped | Restarted | ModelNote


@dataclass(frozen=True, slots=True)
class Turn:
    """What a whole turn of a model came to."""

    text: str = ""
    calls: tuple[CallAsked, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)
    stop: ModelStop | None = None


_UNANSWERED = (
    "This call was not answered: the run was interrupted before it ended. Whether it took effect is not known."
)


def answered(messages: Iterable[Message]) -> list[Message]:
    """The conversation with an answer to every call, as providers demand it: an interrupted run may have left some open."""
    return list(_answered(messages))


def _answered(messages: Iterable[Message]) -> Iterator[Message]:
    waiting: dict[str, CallAsked] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            if waiting.pop(message.call, None) is not None:
                yield message
            continue
        yield from _given_up(waiting)
        waiting = {call.id: call for call in message.calls} if isinstance(message, ModelMessage) else {}
        yield message
    yield from _given_up(waiting)


def _given_up(waiting: Mapping[str, CallAsked]) -> Iterator[ToolMessage]:
    for call in waiting.values():
        yield ToolMessage(call.id, call.name, (TextContent(_UNANSWERED),), is_error=True)
