"""Servers that ask the agent's model: answered within a budget of their own, and never more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from squidbot.core.domain.conversation import (
    Message,
    ModelMessage,
    Restarted,
    Stopped,
    TextDelta,
    TokenUsage,
    UserMessage,
)
from squidbot.core.domain.errors import Declined, ModelError
from squidbot.core.ports import LanguageModel

_LONGEST = 200_000
"""Characters of one request."""
_SYSTEM = "A tool asks you for a text. Answer it, and nothing else; you have no tools here."


@dataclass(frozen=True, slots=True)
class SamplingBudget:
    """How much one server may ask for."""

    requests: int
    tokens: int


@dataclass(slots=True)
class _Spent:
    requests: int = 0
    tokens: int = 0
    """Used up, or promised to a request that is being answered."""


class Sampler:
    """Asks the model in a server's name, as long as the server's budget lasts."""

    def __init__(self, model: LanguageModel, budgets: Mapping[str, SamplingBudget]) -> None:
        self.model = model
        self._budgets = budgets
        self._spent: dict[str, _Spent] = {}

    async def answer(self, server: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of `sampling/createMessage`. Raises Declined."""
        budget = self._budgets.get(server)
        if budget is None:
            raise Declined(f"the settings do not allow server {server!r} to ask the model")
        if params.get("tools"):
            raise Declined("no tools are offered to a server's own questions")
        messages, length = _messages(params)
        spent = self._spent.setdefault(server, _Spent())
        if spent.requests >= budget.requests:
            raise Declined(f"server {server!r} has used up its {budget.requests} requests")
        read = length // 4 + 1
        left = budget.tokens - spent.tokens - read
        if left <= 0:
            raise Declined(f"server {server!r} has used up its {budget.tokens} tokens")
        asked = params.get("maxTokens")
        most = min(asked, left) if isinstance(asked, int) and asked > 0 else left
        # Taken before the first wait: requests that come at once share one budget.
        spent.requests += 1
        spent.tokens += read + most
        usage = TokenUsage(read, most)
        try:
            text, stop, usage = await self._asked(messages, str(params.get("systemPrompt") or ""), most, usage)
        except ModelError as error:
            raise Declined(f"the model did not answer ({error.kind})") from error
        finally:
            spent.tokens += usage.total - read - most
        return {
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": self.model.name,
            "stopReason": "maxTokens" if stop == "length" else "endTurn",
        }

    async def _asked(
        self, messages: Sequence[Message], system: str, most: int, worst: TokenUsage
    ) -> tuple[str, str, TokenUsage]:
        parts: list[str] = []
        stop, usage = "end", TokenUsage()
        async for event in self.model.stream(messages, system=f"{_SYSTEM}\n\n{system}".strip(), max_tokens=most):
            match event:
                case TextDelta(text=text):
                    parts.append(text)
                case Restarted():
                    parts = []
                case TokenUsage():
                    usage += event
                case Stopped(reason=reason):
                    stop = reason
                case _:
                    continue
        # A model that does not count has used up what it was given.
        return "".join(parts), stop, usage if usage.total else worst


def _messages(params: Mapping[str, Any]) -> tuple[list[Message], int]:
    """The conversation that a server sends, as text, and its length. Raises Declined."""
    given = params.get("messages")
    if not isinstance(given, list) or not given:
        raise Declined("the request has no messages")
    found: list[Message] = []
    length = len(str(params.get("systemPrompt") or ""))
    for message in given:
        if not isinstance(message, Mapping):
            raise Declined("the request has a message that is none")
        text = _text(message.get("content"))
        length += len(text)
        found.append(ModelMessage(text) if message.get("role") == "assistant" else UserMessage(text))
    if length > _LONGEST:
        raise Declined(f"the request is longer than {_LONGEST} characters")
    return found, length


def _text(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(
        str(block.get("text", "")) if block.get("type") == "text" else f"[{block.get('type')}]"
        for block in blocks
        if isinstance(block, Mapping)
    )
