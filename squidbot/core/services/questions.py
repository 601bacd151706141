"""Records what servers ask of whoever called them, whether it was answered or not."""

from collections.abc import Mapping
from typing import Any

import anyio

from squidbot.core.domain.callers import Caller, Envelope
from squidbot.core.domain.errors import Declined, NotOffered, NotRecorded
from squidbot.core.domain.recorded import known_out
from squidbot.core.domain.servers import ServerLog
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import Counterpart, Question
from squidbot.core.services.permissions import Permissions
from squidbot.core.services.recording import Recorder
from squidbot.core.services.sampling import Sampler


class Questions:
    """Everything that a server asks leaves a record: of kind `question`, under the name of what it asked for."""

    def __init__(self, recorder: Recorder, permissions: Permissions) -> None:
        self.recorder = recorder
        self.permissions = permissions
        self.sampler: Sampler | None = None
        """Asks the configured model in the place of callers who have none, for servers that may."""

    def recorded(self, counterpart: Counterpart | None, caller: Caller) -> "RecordedCounterpart | None":
        """The same counterpart, with a record of each question."""
        return None if counterpart is None else RecordedCounterpart(counterpart, caller, self)

    async def unclaimed(self, question: Question, server: str, params: Mapping[str, Any], reason: str) -> None:
        """Record a question that nobody was asked, because nobody knows whose it is. Raises NotRecorded."""
        nobody = Caller("", origin="system")
        attempt = self.recorder.attempt(
            nobody, ToolId(server, question), params, revision=self.permissions.revision, kind="question"
        )
        await self.recorder.failed(attempt, f"declined: {reason}", outcome="refused")


class RecordedCounterpart:
    """Satisfies `Counterpart`: passes all on to another, without any secret of the settings, and records questions."""

    def __init__(self, inner: Counterpart, caller: Caller, questions: Questions) -> None:
        self._inner = inner
        self._caller = caller
        self._questions = questions
        self._recorder = questions.recorder
        self._permissions = questions.permissions

    @property
    def owner(self) -> str:
        return self._inner.owner

    @property
    def envelope(self) -> Envelope | None:
        return self._inner.envelope

    async def ask(self, question: Question, server: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the other answers; nothing if it cannot be recorded."""
        what = ToolId(server, question)
        recorder = self._recorder
        attempt = recorder.attempt(self._caller, what, params, revision=self._permissions.revision, kind="question")
        try:
            answer = await self._answer(question, server, known_out(params, recorder.redactor))
        except anyio.get_cancelled_exc_class():
            await recorder.failed(attempt, "the call ended before it was answered", outcome="cancelled")
            raise
        except Declined as declined:
            await recorder.failed(attempt, f"declined: {declined}", outcome="refused")
            raise
        except Exception as error:
            reason = f"declined: answering failed ({type(error).__name__})"
            await recorder.failed(attempt, reason, outcome="refused")
            raise
        try:
            if answer is None:
                await recorder.failed(attempt, "declined: the client cannot or will not answer", outcome="refused")
            else:
                await recorder.done(attempt, _kept(question, answer))
        except NotRecorded:
            return None
        return answer

    async def _answer(self, question: Question, server: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        try:
            return await self._inner.ask(question, server, params)
        except NotOffered:
            # Only who cannot answer is answered for: whoever said no has said no.
            if question != "sampling" or self._questions.sampler is None:
                raise
        return await self._questions.sampler.answer(server, params)

    async def log(self, entry: ServerLog) -> None:
        data = known_out(entry.data, self._recorder.redactor)
        await self._inner.log(ServerLog(entry.server, entry.level, data, entry.logger))


def _kept(question: Question, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a record keeps of an answer: of a person's words only to what they were given."""
    if question == "sampling":
        return answer
    content = answer.get("content")
    return {"action": answer.get("action"), "answered": sorted(content) if isinstance(content, Mapping) else []}
