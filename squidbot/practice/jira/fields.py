"""Reads what a client wants a ticket's fields to be, and says field by field what cannot be taken."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from squidbot.practice.jira import workflow
from squidbot.practice.jira.adf import is_document
from squidbot.practice.jira.manners import Desk, refusal
from squidbot.practice.store import Document

_LONGEST_SUMMARY = 255


class BadField(Exception):
    """Why a field cannot be taken."""


def read(desk: Desk, given: Mapping[str, Any]) -> Document:
    """The changes that Jira's fields mean. Raises Refusal with every problem at once."""
    changes: Document = {}
    problems: dict[str, str] = {}
    for name, value in given.items():
        reader = _READERS.get(name)
        if reader is None:
            problems[name] = f"Field '{name}' cannot be set. It is not on the appropriate screen, or unknown."
            continue
        try:
            ours, found = reader
            changes[ours] = found(desk, value)
        except BadField as problem:
            problems[name] = str(problem)
    if problems:
        raise refusal(400, **problems)
    return changes


def text(desk: Desk, value: Any) -> str | Document | None:
    """A text in the form of the version that is spoken."""
    if value is None:
        return None
    if desk.rich and not is_document(value):
        raise BadField("Operation value must be an Atlassian Document (see the Atlassian Document Format)")
    if not desk.rich and not isinstance(value, str):
        raise BadField("Operation value must be a string")
    kept: str | Document = value
    return kept


def _summary(_desk: Desk, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadField("You must specify a summary of the issue.")
    if "\n" in value or "\r" in value:
        raise BadField("The summary is invalid because it contains newline characters.")
    if len(value) > _LONGEST_SUMMARY:
        raise BadField(f"Summary can't exceed {_LONGEST_SUMMARY} characters.")
    return value


def _project(_desk: Desk, value: Any) -> str:
    given = value if isinstance(value, dict) else {}
    if given.get("key") == workflow.PROJECT_KEY or str(given.get("id")) == workflow.PROJECT_ID:
        return workflow.PROJECT_KEY
    raise BadField("valid project is required")


def _named(known: Mapping[str, str], problem: str) -> Callable[[Desk, Any], str]:
    """One of a few, by name or by id."""

    def read_one(_desk: Desk, value: Any) -> str:
        given = value if isinstance(value, dict) else {}
        for name, number in known.items():
            if str(given.get("name", "")).lower() == name.lower() or str(given.get("id")) == number:
                return name
        raise BadField(problem)

    return read_one


def _user(desk: Desk, value: Any) -> str | None:
    if value is None:
        return None
    given = value if isinstance(value, dict) else {}
    names = ("accountId", "id") if desk.cloud else ("name", "key")
    reference = next((given[name] for name in names if name in given), "")
    if reference is None:
        return None
    person = desk.named(reference)
    if person is None:
        raise BadField(f"User '{reference}' does not exist.")
    return person.login


def _labels(_desk: Desk, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(label, str) for label in value):
        raise BadField("data was not an array of strings")
    for label in value:
        if not label or any(letter.isspace() for letter in label):
            raise BadField(f"The label '{label}' contains spaces which is invalid.")
    return list(dict.fromkeys(value))


def _due(_desk: Desk, value: Any) -> str | None:
    if value is None:
        return None
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise BadField("Error parsing date string: use yyyy-MM-dd") from None


def _parent(desk: Desk, value: Any) -> int | None:
    if value is None:
        return None
    ticket = by_key(desk, str((value if isinstance(value, dict) else {}).get("key", "")))
    if ticket is None:
        raise BadField("Could not find issue by id or key.")
    return int(ticket["id"])


def _sprints(desk: Desk, value: Any) -> list[int]:
    numbers = value if isinstance(value, list) else [] if value is None else [value]
    for number in numbers:
        if not isinstance(number, int) or desk.store.get("sprint", number) is None:
            raise BadField("Number value expected as the Sprint id.")
    return numbers


def _points(_desk: Desk, value: Any) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise BadField("Operation value must be a number")
    return value


def by_key(desk: Desk, name: str) -> Document | None:
    """A ticket by its key, whatever the case, or by its id."""
    prefix, _, number = name.rpartition("-")
    if not number.isdecimal() or len(number) > 9:
        return None
    if prefix.upper() == workflow.PROJECT_KEY:
        return desk.store.get("ticket", int(number))
    return None if prefix else desk.store.get("ticket", int(number) - workflow.FIRST_ID)


_READERS: dict[str, tuple[str, Callable[[Desk, Any], Any]]] = {
    "project": ("project", _project),
    "summary": ("summary", _summary),
    "description": ("description", text),
    "issuetype": ("type", _named(workflow.TYPES, "Specify a valid issue type")),
    "priority": ("priority", _named(workflow.PRIORITIES, "The priority selected is invalid.")),
    "assignee": ("assignee", _user),
    "reporter": ("reporter", _user),
    "labels": ("labels", _labels),
    "duedate": ("due", _due),
    "parent": ("parent", _parent),
    workflow.SPRINT_FIELD: ("sprints", _sprints),
    workflow.POINTS_FIELD: ("points", _points),
}
