"""Who is at the other end of an agent's calls: its model for servers that may ask it, the person for what people know."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from squidbot.core.domain.elicitation import Field, Form, Unaskable, Visit, value_of, wanted
from squidbot.core.domain.errors import Declined
from squidbot.core.domain.servers import ServerLog
from squidbot.core.domain.text import unhidden
from squidbot.core.ports import Person, Question
from squidbot.core.services.sampling import Sampler

ROUNDS = 10
"""How often one server may ask the person in one request."""
_TRIES = 3
_LONGEST = 2_000


class AgentCounterpart:
    """Satisfies `Counterpart`. Without a sampler no server is answered by a model, without a person none by a person."""

    def __init__(self, owner: str, *, sampler: Sampler | None = None, person: Person | None = None) -> None:
        self.owner = owner
        self.envelope = None
        self._sampler = sampler
        self._person = person
        self._asked: Counter[str] = Counter()

    def begin(self) -> None:
        """A new request: servers may ask anew."""
        self._asked.clear()

    async def ask(self, question: Question, server: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Raises Declined."""
        if question == "sampling":
            if self._sampler is None:
                raise Declined("there is no model to ask")
            return await self._sampler.answer(server, params)
        return await self._elicited(server, params)

    async def aclose(self) -> None:
        """Close the model that servers were answered by."""
        if self._sampler is not None:
            await self._sampler.model.aclose()

    async def log(self, entry: ServerLog) -> None:
        """What servers log is in our own log already."""

    async def _elicited(self, server: str, params: Mapping[str, Any]) -> dict[str, Any]:
        asked = wanted(params)
        if isinstance(asked, Unaskable):
            raise Declined(asked.reason)
        if self._person is None:
            raise Declined("nobody is at a terminal")
        self._asked[server] += 1
        if self._asked[server] > ROUNDS:
            raise Declined(f"server {server!r} has asked {ROUNDS} times already")
        self._person.tell(f"Server {server!r} asks: {unhidden(asked.message)[:_LONGEST]}")
        match asked:
            case Visit(url=url):
                return await self._visited(self._person, url)
            case Form(fields=fields):
                return await self._filled_in(self._person, fields)

    async def _visited(self, person: Person, url: str) -> dict[str, Any]:
        person.tell(f"It names a page, which is not opened by itself: {unhidden(url, newlines=False)[:_LONGEST]}")
        answer = await person.ask("Have you been there, and shall it go on? [y/N]")
        agreed = answer is not None and answer.strip().lower() in ("y", "yes")
        return {"action": "accept" if agreed else "decline"}

    async def _filled_in(self, person: Person, fields: tuple[Field, ...]) -> dict[str, Any]:
        agreed = await person.ask(f"Answer {'it' if fields else 'yes'}? [y/N]")
        if agreed is None or agreed.strip().lower() not in ("y", "yes"):
            return {"action": "decline"}
        content: dict[str, Any] = {}
        for field in fields:
            found = await self._value(person, field)
            if found is None and field.required:
                return {"action": "cancel"}
            if found is not None:
                content[field.name] = found
        return {"action": "accept", "content": content}

    async def _value(self, person: Person, field: Field) -> Any:
        """What the person says of one field; None if nothing."""
        default = field.schema.get("default")
        words = unhidden(field.label, newlines=False)[:_LONGEST]
        if field.choices:
            words += "".join(
                f"\n  {number}. {unhidden(choice)[:200]}" for number, choice in enumerate(field.choices, 1)
            )
        words += f" [{default}]" if default is not None else "" if field.required else " (may be left empty)"
        for _ in range(_TRIES):
            text = await person.ask(words)
            if text is None:
                return None
            if not text.strip():
                if default is not None or not field.required:
                    return default
                continue
            try:
                return value_of(field, text)
            except ValueError as error:
                person.tell(f"That does not fit: {error}.")
        return None
