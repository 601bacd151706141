"""Queries in Jira's language, made from simple fields, or held to one project."""

import re
from typing import Final

from squidbot.servers.refusal import Refused

_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_ORDER: Final = re.compile(r"(?i)\border\s+by\b")
NEWEST: Final = "ORDER BY updated DESC"


def quoted(value: str) -> str:
    """A value that cannot be taken for a part of the query."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
    return f'"{escaped}"'


def joined(clauses: list[str]) -> str:
    """All of them, the last changed tickets first."""
    return f"{' AND '.join(clauses)} {NEWEST}".strip()


def within(project: str, jql: str) -> str:
    """The query, for the tickets of one project only."""
    conditions, order = _divided(jql)
    _check_closed(conditions)
    own = f"project = {quoted(project)}"
    return f"{own} AND ({conditions}) {order}" if conditions else f"{own} {order}"


def _divided(jql: str) -> tuple[str, str]:
    """The conditions, and the order in which they are to come."""
    order = _ORDER.search(_without_strings(jql))
    if order is None:
        return jql.strip(), NEWEST
    return jql[: order.start()].strip(), jql[order.start() :].strip()


def _check_closed(conditions: str) -> None:
    """A bracket too many would end ours, and what follows would be asked of every project."""
    depth = 0
    for character in _without_strings(conditions):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            break
    if depth:
        raise Refused("the brackets of the query do not fit together: each '(' needs its ')'")


def _without_strings(jql: str) -> str:
    """The same length, with nothing in quotes left."""
    return _STRING.sub(lambda string: " " * len(string[0]), jql)
