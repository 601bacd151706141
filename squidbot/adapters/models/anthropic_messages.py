"""Anthropic's models, by their messages API."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from squidbot.adapters.models.anthropic_wire import Gathering, anthropic_messages, anthropic_tool
from squidbot.adapters.models.definition import MOST_OUTPUT, ModelDefinition
from squidbot.adapters.models.faults import broke_off, explained, library_missing
from squidbot.adapters.models.offering import Offer
from squidbot.adapters.models.openai_wire import sendable
from squidbot.core.domain.conversation import Message, ModelEvent, ModelNote, ModelTool, Stopped, TextDelta
from squidbot.core.domain.errors import ModelError

_CONNECT = 10.0
_READ = 180.0


class AnthropicModel:
    """Satisfies `LanguageModel`."""

    def __init__(self, model: ModelDefinition) -> None:
        self.name = model.name
        self._model = model
        self._offer = Offer("anthropic")
        self._sdk: Any = None
        self._opened: Any = None

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        tools: Sequence[ModelTool] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[ModelEvent]:
        """The next turn. Raises ModelError."""
        client = self._client()
        request: dict[str, Any] = {
            "model": self._model.name,
            "max_tokens": self._model.most_output(max_tokens) or MOST_OUTPUT,
            "messages": anthropic_messages(messages, inputs=self._model.inputs),
            "stream": True,
        }
        if system:
            # The briefing and the tools before it are the same in every turn: read once, and paid for once.
            request["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        while True:
            offered = self._offer.fit(tools)
            for note in self._offer.notes():
                yield ModelNote(note)
            more = {"tools": [anthropic_tool(tool) for tool in offered]} if offered else {}
            try:
                answer = await client.messages.create(**sendable({**request, **more}))
                break
            except Exception as error:
                if not self._offer.dropped(error, offered):
                    raise explained(error, self._sdk, self._model) from error
        async for event in self._events(answer):
            yield event

    async def _events(self, answer: Any) -> AsyncIterator[ModelEvent]:
        gathering, begun = Gathering(), False
        try:
            async for event in answer:
                begun = True
                text = gathering.take(event)
                if text:
                    yield TextDelta(text)
        except Exception as error:
            raise explained(error, self._sdk, self._model) from error
        finally:
            await answer.close()
        if gathering.stop is None:
            raise broke_off(self._model, begun=begun)
        for call in gathering.calls():
            yield call
        yield self._model.usage(gathering.read, gathering.written)
        yield Stopped(gathering.stop)

    def _client(self) -> Any:
        if self._opened is not None:
            return self._opened
        try:
            import anthropic
            import httpx2
        except ImportError:
            raise library_missing("anthropic") from None
        if not self._model.api_key and not self._model.base_url:
            raise ModelError(
                f"model {self._model.name!r} of Anthropic needs a key, and there is none",
                kind="auth",
                hint="Set ANTHROPIC_API_KEY, or model.api_key in the settings.",
            )
        self._sdk = anthropic
        self._opened = anthropic.AsyncAnthropic(
            api_key=self._model.api_key or "not-needed",
            base_url=self._model.base_url or "https://api.anthropic.com",
            max_retries=0,
            http_client=httpx2.AsyncClient(
                timeout=httpx2.Timeout(_READ, connect=_CONNECT), trust_env=not self._model.is_local
            ),
        )
        return self._opened

    async def aclose(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()
