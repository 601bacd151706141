"""A person at a terminal who types what they were told to type."""

from dataclasses import dataclass, field


@dataclass
class FakePerson:
    """Satisfies `Person`: one answer for each question, then silence."""

    answers: list[str | None] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    async def ask(self, question: str) -> str | None:
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else None

    def tell(self, text: str) -> None:
        self.told.append(text)
