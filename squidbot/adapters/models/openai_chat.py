"""Models that speak OpenAI's chat completions, wherever they are: OpenAI, OpenRouter, vLLM, Ollama, LM Studio, llama.cpp."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from squidbot.adapters.models.definition import ModelDefinition
from squidbot.adapters.models.faults import broke_off, explained, library_missing
from squidbot.adapters.models.offering import Offer
from squidbot.adapters.models.openai_wire import Gathering, openai_messages, openai_tool, sendable
from squidbot.core.domain.conversation import Message, ModelEvent, ModelNote, ModelTool, Stopped, TextDelta
from squidbot.core.domain.errors import ModelError

_CONNECT = 10.0
_READ = 180.0
"""Seconds between two pieces of an answer: models that think say nothing for a while."""


class OpenAIModel:
    """Satisfies `LanguageModel`."""

    def __init__(self, model: ModelDefinition) -> None:
        self.name = model.name
        self._model = model
        self._offer = Offer("openai")
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
        written = openai_messages(messages, system=system, inputs=self._model.inputs)
        offered = self._offer.fit(tools)
        for note in self._offer.notes():
            yield ModelNote(note)
        while True:
            try:
                answer = await client.chat.completions.create(**sendable(self._request(written, offered, max_tokens)))
                break
            except Exception as error:
                if not self._offer.dropped(error, offered):
                    raise explained(error, self._sdk, self._model) from error
                offered = self._offer.fit(tools)
                for note in self._offer.notes():
                    yield ModelNote(note)
        async for event in self._events(answer):
            yield event

    async def _events(self, answer: Any) -> AsyncIterator[ModelEvent]:
        gathering, begun = Gathering(), False
        try:
            async for chunk in answer:
                begun = True
                for text in gathering.take(chunk):
                    yield TextDelta(text)
        except Exception as error:
            raise explained(error, self._sdk, self._model) from error
        finally:
            await answer.close()
        if gathering.stop is None:
            raise broke_off(self._model, begun=begun)
        for call in gathering.calls():
            yield call
        if gathering.usage is not None:
            read, wrote, cost = gathering.usage
            yield self._model.usage(read, wrote, cost)
        yield Stopped(gathering.stop)

    def _request(self, messages: list[Any], tools: Sequence[ModelTool], max_tokens: int | None) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model.name,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if tools:
            request["tools"] = [openai_tool(tool) for tool in tools]
        most = self._model.most_output(max_tokens)
        if most is not None:
            # OpenAI itself has renamed it; those who imitate it mostly have not.
            request["max_tokens" if self._model.base_url else "max_completion_tokens"] = most
        return request

    def _client(self) -> Any:
        if self._opened is not None:
            return self._opened
        try:
            import httpx2
            import openai
        except ImportError:
            raise library_missing("openai") from None
        key = self._model.api_key or ("not-needed" if self._model.base_url else None)
        if key is None:
            raise ModelError(
                f"model {self._model.name!r} of OpenAI needs a key, and there is none",
                kind="auth",
                hint="Set OPENAI_API_KEY, or model.api_key in the settings.",
            )
        self._sdk = openai
        self._opened = openai.AsyncOpenAI(
            api_key=key,
            base_url=self._model.base_url or "https://api.openai.com/v1",
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
