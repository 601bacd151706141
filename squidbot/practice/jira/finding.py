"""Finds tickets by a query: what each field means, and how it compares."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from squidbot.practice import clock
from squidbot.practice.jira import workflow
from squidbot.practice.jira.adf import to_text
from squidbot.practice.jira.jql import BadQuery, Both, Clause, Function, Negation, Node, Query, Value, parse
from squidbot.practice.jira.manners import Desk
from squidbot.practice.people import PEOPLE, by_account, by_email, by_login
from squidbot.practice.store import Document

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ORDERED = {"<", "<=", ">", ">="}


@dataclass(frozen=True, slots=True)
class Field:
    """What a ticket has in it, and how a query's word is understood. Words are compared without case."""

    of: Callable[[Document], Iterable[Any]]
    read: Callable[[str], Any]
    kind: str = "word"


def find(desk: Desk, jql: str, *, bounded: bool = False) -> list[Document]:
    """The tickets that fit, in order. Raises BadQuery."""
    query = parse(jql)
    if bounded and query.where is None:
        raise BadQuery("Unbounded JQL queries are not allowed here. Please add a search restriction to your query.")
    finder = _Finder(desk)
    fits = finder.predicate(query.where) if query.where else lambda _ticket: True
    found = [ticket for ticket in desk.store.all("ticket")[::-1] if fits(ticket)]
    return finder.ordered(found, query)


class _Finder:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._sprints = desk.store.all("sprint")
        self._now = datetime.now(UTC)
        self._comments: dict[int, list[str]] = {}
        for comment in desk.store.all("ticket_comment"):
            self._comments.setdefault(comment["ticket"], []).append(to_text(comment["body"]) or "")
        self._fields = self._all_fields()

    def predicate(self, node: Node) -> Callable[[Document], bool]:
        """Everything is looked up now, so that a query that cannot be is refused even if nothing would fit it."""
        match node:
            case Negation(part):
                inner = self.predicate(part)
                return lambda ticket: not inner(ticket)
            case Both(parts, any_of):
                inners = [self.predicate(part) for part in parts]
                combine = any if any_of else all
                return lambda ticket: combine(inner(ticket) for inner in inners)
            case Clause():
                return self._comparison(node)

    def ordered(self, tickets: list[Document], query: Query) -> list[Document]:
        """Later fields first: sorting keeps the order of equals. Tickets without a value come last."""
        for name, descending in reversed(query.order):
            field = self._field(name)

            def key(ticket: Document, field: Field = field) -> tuple[bool, Any]:
                values = sorted(field.of(ticket))
                return bool(values), values[0] if values else 0

            filled = sorted((t for t in tickets if key(t)[0]), key=key, reverse=descending)
            tickets = filled + [ticket for ticket in tickets if not key(ticket)[0]]
        return tickets

    def _comparison(self, clause: Clause) -> Callable[[Document], bool]:
        field, operator = self._field(clause.field), clause.operator
        if (field.kind == "text") != (operator in {"~", "!~"}) and operator not in {"IS", "IS NOT"}:
            raise BadQuery(f"The operator '{operator}' is not supported by the '{clause.field}' field.")
        if operator in _ORDERED and field.kind == "word":
            raise BadQuery(f"The operator '{operator}' is not supported by the '{clause.field}' field.")
        empty = [_is_empty(value) for value in clause.values]
        if operator in {"IS", "IS NOT"}:
            if not all(empty):
                raise BadQuery(f"The operator '{operator}' takes EMPTY or NULL for the field '{clause.field}'.")
            return lambda ticket: (not list(field.of(ticket))) == (operator == "IS")
        wanted = [found for value in clause.values if not _is_empty(value) for found in self._values(field, value)]
        return _compared(field, operator, wanted, empty=any(empty))

    def _field(self, name: str) -> Field:
        known = self._fields.get(name.lower())
        if known is None:
            raise BadQuery(f"Field '{name}' does not exist or you do not have permission to view it.")
        return known

    def _values(self, field: Field, value: Value) -> list[Any]:
        if isinstance(value, str):
            return [field.read(value)]
        states = {"opensprints": "active", "closedsprints": "closed", "futuresprints": "future"}
        name = value.name.lower()
        if name == "currentuser":
            return [self._desk.call.person.login]
        if name in states:
            return [sprint["id"] for sprint in self._sprints if sprint["state"] == states[name]]
        if field.kind == "date" and (start := self._start(value)) is not None:
            return [start]
        raise BadQuery(f"Unable to find JQL function '{value.name}({', '.join(value.arguments)})'.")

    def _start(self, function: Function) -> str | None:
        day = self._now.replace(hour=0, minute=0, second=0, microsecond=0)
        starts = {
            "now": self._now,
            "startofday": day,
            "endofday": day + timedelta(days=1, seconds=-1),
            "startofweek": day - timedelta(days=day.weekday()),
            "startofmonth": day.replace(day=1),
        }
        found = starts.get(function.name.lower())
        return clock.written(found) if found else None

    def _all_fields(self) -> dict[str, Field]:
        of = _plain
        person = _one_of("assignee", {name: p.login for p in PEOPLE for name in (p.login, p.name.lower())}, _person)
        key = Field(lambda ticket: [ticket["id"]], self._key)
        kind = Field(of("type"), _one_of("issuetype", _names(workflow.TYPES)))
        due = Field(of("due"), self._date, "date")
        fields = {
            "project": Field(lambda _ticket: [workflow.PROJECT_KEY], _one_of("project", _PROJECTS)),
            "status": Field(of("status"), _one_of("status", _names({n: i for n, (i, _) in workflow.STATUSES.items()}))),
            "statuscategory": Field(
                lambda ticket: [workflow.STATUSES[ticket["status"]][1]],
                _one_of("statusCategory", _names({n: key for n, (_, key, _) in workflow.CATEGORIES.items()})),
            ),
            "assignee": Field(of("assignee"), person),
            "reporter": Field(of("reporter"), person),
            "creator": Field(of("reporter"), person),
            "sprint": Field(lambda ticket: ticket["sprints"], self._sprint),
            "labels": Field(lambda ticket: [label.lower() for label in ticket["labels"]], str.lower),
            "priority": Field(
                lambda ticket: [-int(workflow.PRIORITIES[ticket["priority"]])],
                _one_of("priority", {n.lower(): -int(i) for n, i in workflow.PRIORITIES.items()}),
                "number",
            ),
            "resolution": Field(
                lambda ticket: ["Done"] if ticket["resolved"] else [],
                _one_of("resolution", {"done": "Done", "unresolved": "Unresolved"}),
            ),
            "parent": Field(of("parent"), self._key),
            "summary": Field(of("summary"), str, "text"),
            "description": Field(lambda ticket: _some(to_text(ticket["description"])), str, "text"),
            "comment": Field(lambda ticket: self._comments.get(ticket["id"], []), str, "text"),
            "text": Field(self._everything, str, "text"),
            "created": Field(of("created"), self._date, "date"),
            "updated": Field(of("updated"), self._date, "date"),
            "resolved": Field(of("resolved"), self._date, "date"),
            "story points": Field(of("points"), _number, "number"),
            "rank": Field(lambda ticket: [ticket["id"]], _number, "number"),
        }
        fields |= dict.fromkeys(("key", "issuekey", "issue", "id"), key) | dict.fromkeys(("type", "issuetype"), kind)
        fields |= dict.fromkeys(("due", "duedate"), due) | {"resolutiondate": fields["resolved"]}
        return fields | {"createddate": fields["created"], "updateddate": fields["updated"]}

    def _everything(self, ticket: Document) -> list[str]:
        return [
            "\n".join([ticket["summary"], to_text(ticket["description"]) or "", *self._comments.get(ticket["id"], [])])
        ]

    def _key(self, word: str) -> int:
        match = re.fullmatch(rf"(?:{workflow.PROJECT_KEY}-)?(\d{{1,9}})", word, re.IGNORECASE)
        number = int(match[1]) if match else 0
        number -= workflow.FIRST_ID if match and match[0].isdecimal() else 0
        if self._desk.store.get("ticket", number) is None:
            raise BadQuery(f"An issue with key '{word}' does not exist for field 'key'.")
        return number

    def _sprint(self, word: str) -> int:
        for sprint in self._sprints:
            if word.lower() in {str(sprint["id"]), sprint["name"].lower()}:
                return int(sprint["id"])
        raise BadQuery(f"Sprint with name '{word}' does not exist or you do not have permission to view it.")

    def _date(self, word: str) -> str:
        if relative := re.fullmatch(r"([+-]?\d{1,5})([mhdw])", word):
            return clock.written(self._now + timedelta(**{_UNITS[relative[2]]: int(relative[1])}))
        try:
            return clock.written(datetime.fromisoformat(word.replace("/", "-")).replace(tzinfo=UTC))
        except ValueError:
            raise BadQuery(
                f"Date value '{word}' is invalid. Valid formats include: 'yyyy/MM/dd HH:mm', 'yyyy-MM-dd HH:mm', "
                "'yyyy/MM/dd', 'yyyy-MM-dd', or a period format e.g. '-5d', '4w 2d'."
            ) from None


_PROJECTS = {
    name.lower(): workflow.PROJECT_KEY for name in (workflow.PROJECT_KEY, workflow.PROJECT_ID, workflow.PROJECT_NAME)
}


def _compared(field: Field, operator: str, wanted: list[Any], *, empty: bool) -> Callable[[Document], bool]:
    """As in Jira, a ticket without a value fits no comparison, not even a negative one, unless EMPTY is asked for."""
    match operator:
        case "=" | "IN":
            return lambda ticket: (
                any(value in wanted for value in field.of(ticket)) or (empty and not list(field.of(ticket)))
            )
        case "!=" | "NOT IN":
            return lambda ticket: (
                bool(list(field.of(ticket))) and all(value not in wanted for value in field.of(ticket))
            )
        case "~":
            return lambda ticket: any(_has_words(text, wanted[0]) for text in field.of(ticket))
        case "!~":
            return lambda ticket: not any(_has_words(text, wanted[0]) for text in field.of(ticket))
        case _:
            return lambda ticket: any(
                _is_ordered(value, operator, other) for value in field.of(ticket) for other in wanted
            )


def _is_ordered(value: Any, operator: str, other: Any) -> bool:
    match operator:
        case "<":
            return bool(value < other)
        case "<=":
            return bool(value <= other)
        case ">":
            return bool(value > other)
        case _:
            return bool(value >= other)


def _has_words(text: str, wanted: str) -> bool:
    """All the words, or with quotes inside the quotes the phrase."""
    if len(wanted) > 1 and wanted[0] == wanted[-1] == '"':
        return wanted[1:-1].lower() in text.lower()
    return all(word.strip("*?~+").lower() in text.lower() for word in wanted.split())


def _is_empty(value: Value) -> bool:
    return isinstance(value, str) and value.upper() in {"EMPTY", "NULL"}


def _plain(name: str) -> Callable[[Document], list[Any]]:
    return lambda ticket: _some(ticket[name])


def _some(value: Any) -> list[Any]:
    return [] if value is None or value == "" else [value]


def _names(ids: dict[str, str]) -> dict[str, str]:
    """By name and by id."""
    return {name.lower(): name for name in ids} | {number: name for name, number in ids.items()}


def _one_of(field: str, known: dict[str, Any], other: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    def read(word: str) -> Any:
        found = known.get(word.lower(), other(word) if other else None)
        if found is None:
            raise BadQuery(f"The value '{word}' does not exist for the field '{field}'.")
        return found

    return read


def _person(word: str) -> str | None:
    person = by_account(word) or by_email(word) or by_login(word)
    return person.login if person else None


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise BadQuery(f"'{word}' is not a number.") from None
