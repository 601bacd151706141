"""GitHub's way of greeting and refusing: tokens, error forms, rate limit headers, pages."""

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from squidbot.practice.people import Person, by_token
from squidbot.practice.store import Document
from squidbot.practice.web import Answer, Call, Refusal

DOCUMENTATION = "https://docs.github.com/rest"
LIMIT = 5_000


class GitHubManners:
    """Tokens as `Bearer T`, `token T`, or as the password of basic authentication."""

    def person(self, request: Request) -> Person:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if not given:
            raise error(401, "Requires authentication")
        if scheme.lower() == "basic":
            given = _password(given)
        person = by_token(given.strip()) if scheme.lower() in {"bearer", "token", "basic"} else None
        if person is None:
            raise error(401, "Bad credentials")
        return person

    def unreadable(self, why: str) -> Refusal:
        return error(413 if "bytes" in why else 400, f"Problems parsing JSON: {why}")

    def headers(self) -> Mapping[str, str]:
        """There is no limit here, but clients look for one."""
        return {
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-RateLimit-Limit": str(LIMIT),
            "X-RateLimit-Remaining": str(LIMIT - 1),
            "X-RateLimit-Used": "1",
            "X-RateLimit-Reset": str(int(time.time()) + 3_600),
            "X-RateLimit-Resource": "core",
        }


def error(status: int, message: str) -> Refusal:
    return Refusal(status, {"message": message, "documentation_url": DOCUMENTATION, "status": str(status)})


def not_found() -> Refusal:
    return error(404, "Not Found")


def invalid(resource: str, field: str, code: str = "invalid", *, message: str = "", value: object = None) -> Refusal:
    """A field that cannot be taken; `code` is missing_field, invalid, already_exists or custom."""
    problem: Document = {"resource": resource, "field": field, "code": code}
    if message:
        problem["message"] = message
    if value is not None:
        problem["value"] = value
    return _unprocessable("Validation Failed", [problem])


def unprocessable(message: str) -> Refusal:
    """What GitHub will not do although every field is fine."""
    return _unprocessable("Unprocessable Entity", [message])


def _unprocessable(message: str, errors: Sequence[object]) -> Refusal:
    return Refusal(422, {"message": message, "errors": errors, "documentation_url": DOCUMENTATION, "status": "422"})


def text(call: Call, name: str, resource: str, *, required: bool = False) -> str | None:
    """A string of the body, or None."""
    value = call.body.get(name)
    if value is None or (required and isinstance(value, str) and not value.strip()):
        if required:
            raise invalid(resource, name, "missing_field")
        return None
    if not isinstance(value, str):
        raise invalid(resource, name, message=f"{name} is not a string")
    return value


def words(call: Call, name: str, resource: str) -> list[str] | None:
    """A list of strings of the body, or None; labels may also come as objects with a name."""
    value = call.body.get(name, call.body.get(""))
    if value is None:
        return None
    found = [item.get("name") if isinstance(item, dict) else item for item in value] if isinstance(value, list) else []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in found):
        raise invalid(resource, name, message=f"{name} is not a list of strings")
    return [str(item) for item in found]


def choice(call: Call, name: str, resource: str, options: Sequence[str]) -> str | None:
    """One of a few words, or None."""
    value = text(call, name, resource)
    if value is not None and value not in options:
        raise invalid(resource, name, message=f"{name} is not one of {', '.join(options)}", value=value)
    return value


def page(call: Call, items: Sequence[Document], shape: Callable[[Document], Document]) -> Answer:
    """One page of a list, with the addresses of the others."""
    part, headers = cut(call, items)
    return Answer([shape(item) for item in part], headers=headers)


def cut(call: Call, items: Sequence[Any]) -> tuple[Sequence[Any], dict[str, str]]:
    """The items of the page that is asked for, and the Link header."""
    size = min(max(call.integer("per_page", 30), 1), 100)
    number = max(call.integer("page", 1), 1)
    last = max(-(-len(items) // size), 1)
    others = {"prev": number - 1, "next": number + 1, "last": last, "first": 1}
    wanted = [
        f'<{call.url}?{urlencode({**call.query, "page": other})}>; rel="{name}"'
        for name, other in others.items()
        if (other >= 1 and name in {"prev", "first"} and number > 1) or (name in {"next", "last"} and number < last)
    ]
    return items[(number - 1) * size : number * size], {"Link": ", ".join(wanted)} if wanted else {}


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded).decode().partition(":")[2]
    except ValueError:
        return ""
