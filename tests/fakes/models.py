"""A language model that says what it is told to say, and remembers what it was asked."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from squidbot.core.domain.conversation import CallAsked, Message, ModelEvent, ModelTool, Stopped, TextDelta, ToolMessage

Said: TypeAlias = list[ModelEvent | Exception] | Callable[[Sequence[Message]], list[ModelEvent | Exception]]


@dataclass(frozen=True)
class Request:
    messages: tuple[Message, ...]
    system: str
    tools: tuple[ModelTool, ...]
    max_tokens: int | None

    @property
    def answers(self) -> list[ToolMessage]:
        return [message for message in self.messages if isinstance(message, ToolMessage)]


@dataclass
class FakeModel:
    """Satisfies `LanguageModel`: one list of events for each turn; after the last, it ends."""

    turns: list[Said] = field(default_factory=list)
    name: str = "fake"
    requests: list[Request] = field(default_factory=list)
    closed: bool = False

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        tools: Sequence[ModelTool] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[ModelEvent]:
        self.requests.append(Request(tuple(messages), system, tuple(tools), max_tokens))
        turn: Said = self.turns.pop(0) if self.turns else [TextDelta("The end."), Stopped("end")]
        if callable(turn):
            turn = turn(messages)
        for event in turn:
            if isinstance(event, Exception):
                raise event
            yield event

    async def aclose(self) -> None:
        self.closed = True


def asks(*calls: tuple[str, Any], text: str = "") -> list[ModelEvent | Exception]:
    """A turn that asks for calls, each a name and its arguments."""
    said: list[ModelEvent | Exception] = [TextDelta(text)] if text else []
    for index, (name, arguments) in enumerate(calls):
        words = arguments if isinstance(arguments, str) else json.dumps(arguments)
        said.append(CallAsked(f"c{index}", name, words))
    return [*said, Stopped("calls")]


def says(text: str) -> list[ModelEvent | Exception]:
    """A turn that ends with an answer."""
    return [
        *(TextDelta(word) for word in text.split(" ")[:-1]),
        TextDelta(text.rsplit(" ", maxsplit=1)[-1]),
        Stopped("end"),
    ]


class FakeShelf:
    """Satisfies `ResultShelf`."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def keep(self, text: str) -> str:
        self.kept[name := f"r{len(self.kept)}"] = text
        return name

    def read(self, name: str) -> str:
        return self.kept[name]
