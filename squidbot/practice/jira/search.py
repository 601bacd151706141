"""Searching tickets: pages counted from a start (v2), or followed by a token (v3)."""

import base64
from collections.abc import Mapping
from typing import Any

from squidbot.practice.jira import shapes
from squidbot.practice.jira.finding import find
from squidbot.practice.jira.jql import BadQuery
from squidbot.practice.jira.manners import Desk, refusal
from squidbot.practice.store import Document
from squidbot.practice.web import Answer

_MOST = 100


def search(desk: Desk) -> Answer:
    """Data Center's search, which Cloud had, too."""
    asked = asked_for(desk)
    found = found_by(desk, str(asked.get("jql") or ""))
    return Answer(window(desk, found, asked))


def search_by_token(desk: Desk) -> Answer:
    """Cloud's search: no total, no start, and only ids unless fields are asked for."""
    if not desk.cloud:
        raise refusal(404, "This is Data Center: search at /rest/api/2/search.")
    asked = asked_for(desk)
    found = found_by(desk, str(asked.get("jql") or ""), bounded=True)
    start = _start(asked.get("nextPageToken"))
    size = number(asked, "maxResults", 50)
    part = found[start : start + size]
    wanted = _fields(asked)
    issues = [shapes.issue(desk, ticket, wanted or []) for ticket in part]
    if not wanted or wanted == ["id"]:
        issues = [{"id": issue["id"]} for issue in issues]
    answer: Document = {"issues": issues, "isLast": start + len(part) >= len(found)}
    if not answer["isLast"]:
        answer["nextPageToken"] = base64.urlsafe_b64encode(f"from:{start + size}".encode()).decode()
    return Answer(answer)


def count(desk: Desk) -> Answer:
    return Answer({"count": len(found_by(desk, str(asked_for(desk).get("jql") or "")))})


def found_by(desk: Desk, jql: str, *, bounded: bool = False) -> list[Document]:
    try:
        return find(desk, jql, bounded=bounded)
    except BadQuery as problem:
        raise refusal(400, str(problem)) from None


def window(desk: Desk, found: list[Document], asked: Mapping[str, Any], *, agile: bool = False) -> Document:
    """One page of tickets, counted from `startAt`."""
    start, size = number(asked, "startAt", 0), number(asked, "maxResults", 50)
    wanted = _fields(asked) or ["*navigable"]
    return {
        "expand": "schema,names",
        "startAt": start,
        "maxResults": size,
        "total": len(found),
        "issues": [shapes.issue(desk, ticket, wanted, agile=agile) for ticket in found[start : start + size]],
    }


def asked_for(desk: Desk) -> Mapping[str, Any]:
    """By POST in the body, by GET in the address."""
    return desk.body if desk.call.method == "POST" else desk.call.query


def number(asked: Mapping[str, Any], name: str, default: int) -> int:
    value = asked.get(name, default)
    if isinstance(value, bool) or not str(value).removeprefix("-").isdecimal():
        raise refusal(400, f"'{name}' must be a number.")
    # The Jira client asks for no bound with -1 or False; both mean as many as a page may have.
    return min(int(value), _MOST) if int(value) >= 0 else _MOST


def _fields(asked: Mapping[str, Any]) -> list[str]:
    given = asked.get("fields") or []
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise refusal(400, "'fields' must be a list of names.")
    return [name.strip() for name in names if name.strip()]


def _start(token: object) -> int:
    if not token:
        return 0
    try:
        word, _, start = base64.urlsafe_b64decode(str(token)).decode().partition(":")
        if word == "from":
            return int(start)
    except ValueError:
        pass
    raise refusal(400, "The nextPageToken is not one that this server gave.")
