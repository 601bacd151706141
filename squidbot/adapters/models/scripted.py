"""A model that follows a script: for tests and demonstrations, without any model at all."""

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from string import Template
from typing import Any

import anyio

from squidbot.core.domain.content import text_of
from squidbot.core.domain.conversation import (
    CallAsked,
    Message,
    ModelEvent,
    ModelMessage,
    ModelTool,
    Stopped,
    TextDelta,
    TokenUsage,
    ToolMessage,
)
from squidbot.core.domain.errors import ModelError

_OVER = "The script is over."


class ScriptedModel:
    """Satisfies `LanguageModel`: the turn is the one that follows those already in the conversation.

    A script is `{turns: [{text, calls: [{name, arguments}], remember: {NAME: REGEX}, wait}]}`. `remember` looks for its
    pattern in all answers so far, and `$NAME` in texts and arguments stands for the last match, or its first group.
    """

    def __init__(self, script: Mapping[str, Any], *, name: str) -> None:
        self.name = name
        self._turns = _checked(script, name)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        tools: Sequence[ModelTool] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[ModelEvent]:
        """The next turn of the script; its words come one by one. Raises ModelError."""
        del system, tools, max_tokens
        index = sum(isinstance(message, ModelMessage) for message in messages)
        turn: Mapping[str, Any] = self._turns[index] if index < len(self._turns) else {"text": _OVER}
        facts = self._facts(messages, index)
        await anyio.sleep(float(turn.get("wait", 0)))
        text = Template(str(turn.get("text", ""))).safe_substitute(facts)
        for word in re.findall(r"\S+\s*|\s+", text):
            yield TextDelta(word)
        calls: list[Mapping[str, Any]] = turn.get("calls", [])
        for place, call in enumerate(calls):
            arguments = call.get("arguments", {})
            words = arguments if isinstance(arguments, str) else json.dumps(_filled(arguments, facts))
            yield CallAsked(f"call_{index}_{place}", str(call["name"]), words)
        yield TokenUsage(sum(len(str(message)) for message in messages) // 4, len(text) // 4)
        yield Stopped("calls" if calls else "end")

    def _facts(self, messages: Sequence[Message], index: int) -> dict[str, str]:
        told = "\n".join(text_of(message.content) for message in messages if isinstance(message, ToolMessage))
        facts: dict[str, str] = {}
        for turn in self._turns[: index + 1]:
            for name, pattern in turn.get("remember", {}).items():
                for found in re.finditer(str(pattern), told):
                    facts[name] = found[1] if found.re.groups else found[0]
        return facts

    async def aclose(self) -> None:
        """There is nothing to close."""


def _filled(value: Any, facts: Mapping[str, str]) -> Any:
    match value:
        case str():
            return Template(value).safe_substitute(facts)
        case Mapping():
            return {key: _filled(part, facts) for key, part in value.items()}
        case list():
            return [_filled(part, facts) for part in value]
        case _:
            return value


def _checked(script: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    turns = script.get("turns")
    good = isinstance(turns, list) and all(
        isinstance(turn, Mapping)
        and isinstance(turn.get("calls", []), list)
        and all(isinstance(call, Mapping) and "name" in call for call in turn.get("calls", []))
        and isinstance(turn.get("remember", {}), Mapping)
        for turn in turns
    )
    if not good or not isinstance(turns, list):
        raise ModelError(
            f"the script {name!r} is none: it needs 'turns', a list of objects with 'text' or 'calls'", kind="missing"
        )
    return turns
