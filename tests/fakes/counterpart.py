"""Whoever is at the other end of a call, for a test."""

from collections.abc import Mapping
from typing import Any

import anyio

from squidbot.core.domain.callers import Envelope
from squidbot.core.domain.servers import ServerLog
from squidbot.core.ports import Question


class FakeCounterpart:
    """Satisfies `Counterpart`: answers with its own name, and remembers; with `gate` only once that is open."""

    def __init__(self, owner: str, *, answers: bool = True, gate: anyio.Event | None = None) -> None:
        self.owner = owner
        self.envelope: Envelope | None = None
        self.asked: list[tuple[Question, str, Mapping[str, Any]]] = []
        self.logged: list[ServerLog] = []
        self._answers = answers
        self._gate = gate

    async def ask(self, question: Question, server: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self.asked.append((question, server, params))
        if self._gate is not None:
            await self._gate.wait()
        if not self._answers:
            return None
        if question == "sampling":
            return {"role": "assistant", "content": {"type": "text", "text": self.owner}, "model": "scripted"}
        return {"action": "accept", "content": {"colour": self.owner}}

    async def log(self, entry: ServerLog) -> None:
        self.logged.append(entry)
