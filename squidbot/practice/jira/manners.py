"""Jira's way of greeting and refusing, and what a handler is told of a request."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.requests import Request

from squidbot.practice.people import Person, by_account, by_email, by_login, by_token
from squidbot.practice.store import Document, Store
from squidbot.practice.web import Answer, Call, Refusal


class JiraManners:
    """Mail and token as basic authentication, or a personal token as bearer."""

    def person(self, request: Request) -> Person:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        match scheme.lower():
            case "bearer":
                person = by_token(given.strip())
            case "basic":
                name, token = _credentials(given)
                person = by_token(token)
                # Data Center takes the name where Cloud takes the mail.
                if person is not None and person not in {by_email(name), by_login(name)}:
                    person = None
            case _:
                person = None
        if person is None:
            raise Refusal(
                401,
                _body("You are not authenticated. Authentication required to perform this operation."),
                {"WWW-Authenticate": 'Basic realm="practice"', "X-Seraph-LoginReason": "AUTHENTICATED_FAILED"},
            )
        return person

    def unreadable(self, why: str) -> Refusal:
        return refusal(413 if "bytes" in why else 400, f"There was an error parsing JSON: {why}.")

    def headers(self) -> Mapping[str, str]:
        return {"X-Seraph-LoginReason": "OK"}


@dataclass(frozen=True, slots=True)
class Desk:
    """One request to the tracker, and which Jira it was made to."""

    call: Call
    cloud: bool

    @property
    def store(self) -> Store:
        return self.call.world.store

    @property
    def body(self) -> Mapping[str, Any]:
        return self.call.body

    @property
    def rich(self) -> bool:
        """Whether texts are documents (v3) and not strings (v2)."""
        return self.call.path.get("version") == "3"

    @property
    def api(self) -> str:
        version = self.call.path.get("version", "2")
        return f"{self.call.base}/rest/api/{version if version in {'2', '3'} else '2'}"

    def named(self, value: object) -> Person | None:
        """Whom a user reference means: an account id in Cloud, a name in Data Center."""
        if self.cloud:
            return by_account(value)
        return by_login(value)


DeskHandler: TypeAlias = Callable[[Desk], Answer]


def refusal(status: int, /, *messages: str, **errors: str) -> Refusal:
    """What is wrong altogether, and what with each field, whatever its name."""
    return Refusal(status, _body(*messages, **errors))


def no_issue() -> Refusal:
    return refusal(404, "Issue does not exist or you do not have permission to see it.")


def window(desk: Desk, items: list[Document], name: str, *, size: int = 50) -> Document:
    """One page of a list, counted from `startAt`."""
    start = desk.call.integer("startAt", 0)
    most = min(desk.call.integer("maxResults", size), 100)
    part = items[start : start + most]
    return {
        "startAt": start,
        "maxResults": most,
        "total": len(items),
        "isLast": start + len(part) >= len(items),
        name: part,
    }


def _body(*messages: str, **errors: str) -> Document:
    return {"errorMessages": list(messages), "errors": errors}


def _credentials(encoded: str) -> tuple[str, str]:
    try:
        name, _, token = base64.b64decode(encoded).decode().partition(":")
    except ValueError:
        return "", ""
    return name, token
