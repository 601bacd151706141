"""Who is meant: a person by name or mail address, and never a guess among several."""

from typing import Any

from squidbot.servers.jira.api import Jira
from squidbot.servers.jira.results import Person
from squidbot.servers.refusal import Refused
from squidbot.servers.rest import Query, objects

_MOST = 20
"""Candidates that are looked at; whoever is behind more of them must be named better."""


async def assignable(jira: Jira, who: str, *, ticket: str | None = None, project: str | None = None) -> Person:
    """The one person of that name who can have a ticket, or any ticket of a project."""
    place = {"issueKey": ticket} if ticket else {"project": project or ""}
    return await _found(jira, who, "/user/assignable/search", place)


async def anybody(jira: Jira, who: str) -> Person:
    """The one person of that name, whatever they may do."""
    return await _found(jira, who, "/user/search", {})


def reference(person: Person) -> dict[str, str | None]:
    """A person as a field of a ticket holds one."""
    return {"accountId": person.account_id} if person.account_id else {"name": person.name}


async def _found(jira: Jira, who: str, path: str, place: Query) -> Person:
    if who.lower() == "me":
        return jira.rest.parsed(Person, await jira.rest.get(await jira.path("/myself")))
    words = "query" if await jira.is_cloud() else "username"
    found = await jira.rest.get(await jira.path(path), {**place, words: who, "maxResults": _MOST})
    people = [jira.rest.parsed(Person, item) for item in objects(found)]
    exact = [person for person in people if who.lower() in _names(person)]
    match exact or people:
        case [person]:
            return person
        case []:
            raise Refused(f"nobody who can be chosen here is called {who!r}: use the full name or the mail address")
        case candidates:
            listed = "\n".join(f"  {_told(person)}" for person in candidates)
            raise Refused(f"{who!r} may be one of several people, use the mail address or the id of one:\n{listed}")


def _names(person: Person) -> set[str]:
    every: tuple[Any, ...] = (person.display_name, person.mail, person.name, person.account_id)
    return {name.lower() for name in every if name}


def _told(person: Person) -> str:
    mail = f" <{person.mail}>" if person.mail else ""
    return f"{person.display_name}{mail}, id {person.account_id or person.name}"
