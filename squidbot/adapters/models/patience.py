"""Models that fail now and then: asked again a little later, and in the end another one in their place."""

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Any

import anyio

from squidbot.core.domain.conversation import Message, ModelEvent, ModelNote, ModelTool, Restarted
from squidbot.core.domain.errors import ModelError
from squidbot.core.ports import LanguageModel

_TRIES = 4
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0


class PatientModel:
    """Satisfies `LanguageModel`: asks each model of a list again while its failure may pass, then turns to the next."""

    def __init__(
        self,
        models: Sequence[LanguageModel],
        *,
        tries: int = _TRIES,
        first_wait: float = _FIRST_WAIT,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._models = tuple(models)
        self._tries = tries
        self._first_wait = first_wait
        self._chance = chance
        self._at = 0
        """Which one is asked: whoever took over goes on."""
        self.name = models[0].name

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        tools: Sequence[ModelTool] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[ModelEvent]:
        """The next turn of the first model that gives one. Raises the last one's ModelError."""
        asked: dict[str, Any] = {"system": system, "tools": tools, "max_tokens": max_tokens}
        for index, model in enumerate(self._models[self._at :], self._at):
            self.name, self._at = model.name, index
            try:
                async with aclosing(self._again(model, messages, asked)) as events:
                    async for event in events:
                        yield event
            except ModelError as error:
                if index + 1 == len(self._models):
                    raise
                following = self._models[index + 1].name
                yield Restarted(str(error))
                yield ModelNote(f"{error}; model {following!r} takes over")
            else:
                return

    async def _again(
        self, model: LanguageModel, messages: Sequence[Message], asked: dict[str, Any]
    ) -> AsyncGenerator[ModelEvent, None]:
        for attempt in range(self._tries):
            begun = False
            try:
                async with _closing(model.stream(messages, **asked)) as events:
                    async for event in events:
                        begun = begun or not isinstance(event, ModelNote)
                        yield event
            except ModelError as error:
                wait = self._wait(error, attempt)
                if wait is None:
                    raise
                if begun:
                    yield Restarted(str(error))
                yield ModelNote(f"{error}; asking again in {wait:.1f} s")
                await anyio.sleep(wait)
            else:
                return

    def _wait(self, error: ModelError, attempt: int) -> float | None:
        """Seconds until it is asked again; None if that is of no use."""
        if not error.is_passing or attempt + 1 >= self._tries:
            return None
        if error.kind == "unreachable" and attempt:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= _LONGEST_WAIT else None
        return float(self._first_wait * 2**attempt * (1 + self._chance() / 2))

    async def aclose(self) -> None:
        for model in self._models:
            await model.aclose()


def _closing(stream: AsyncIterator[ModelEvent]) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
    """Whoever stops listening hangs up, too."""
    return aclosing(stream) if isinstance(stream, AsyncGenerator) else nullcontext(stream)
