"""The people of the practice world: one for each role, and the bot that the shared token stands for."""

import hashlib
from dataclasses import dataclass

ORGANISATION = "tidewater"
SHARED_TOKEN = "practice-token"  # noqa: S105  known to everyone, on purpose: it opens nothing but a world for practice


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account in forge and tracker; the same token opens both."""

    id: int
    login: str
    name: str
    role: str
    owner: bool = False
    """An owner of the organisation may approve what they wrote themselves, which GitHub allows nobody."""

    @property
    def email(self) -> str:
        return f"{self.login}@tidewater.example"

    @property
    def account_id(self) -> str:
        """In the form of Jira Cloud, and the same in every world."""
        return f"5{hashlib.sha256(self.login.encode()).hexdigest()[:23]}"

    @property
    def token(self) -> str:
        return SHARED_TOKEN if self.owner else f"{SHARED_TOKEN}-{self.login}"


BOT = Person(1, "squidbot-practice", "Squidbot Practice", "every role", owner=True)
PEOPLE = (
    BOT,
    Person(2, "priya", "Priya Nair", "project_manager"),
    Person(3, "tomas", "Tomas Lindqvist", "tech_lead"),
    Person(4, "bea", "Bea Okafor", "backend_developer"),
    Person(5, "felix", "Felix Brandt", "frontend_developer"),
    Person(6, "quinn", "Quinn Alvarez", "qa_tester"),
    Person(7, "dana", "Dana Kowalski", "devops_engineer"),
    Person(8, "sol", "Sol Marchetti", "solution_architect"),
    Person(9, "aiko", "Aiko Tanaka", "ai_engineer"),
    Person(10, "dee", "Dee Laurent", "designer"),
)

_BY_LOGIN = {person.login: person for person in PEOPLE}
_BY_TOKEN = {person.token: person for person in PEOPLE}
_BY_ACCOUNT = {person.account_id: person for person in PEOPLE}
_BY_EMAIL = {person.email: person for person in PEOPLE}


def by_login(login: object) -> Person | None:
    """Logins are not case-sensitive, as on GitHub."""
    return _BY_LOGIN.get(login.lower()) if isinstance(login, str) else None


def by_token(token: str) -> Person | None:
    return _BY_TOKEN.get(token)


def by_account(account_id: object) -> Person | None:
    return _BY_ACCOUNT.get(account_id) if isinstance(account_id, str) else None


def by_email(email: object) -> Person | None:
    return _BY_EMAIL.get(email.lower()) if isinstance(email, str) else None


def matching(words: str) -> list[Person]:
    """Whose login, name or address has these words in it."""
    wanted = words.strip().lower()
    return [person for person in PEOPLE if wanted in f"{person.login}\n{person.name}\n{person.email}".lower()]
