"""From a request to a handler and back: who asks, for what, in which words a refusal is said."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from squidbot.practice.people import Person
from squidbot.practice.world import World

MAX_BODY = 1_000_000
"""Bytes of a request: more than any issue, less than a mistake."""


class Refusal(Exception):
    """An answer that says no, in the form of the API that was asked."""

    def __init__(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler says; None as a body means that there is none."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media: str = "application/json"
    """Only looked at when the body is bytes."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, read and authenticated."""

    world: World
    person: Person
    site: str
    """The world's own address."""
    base: str
    """The address of the API, as this client knows it."""
    url: str
    method: str
    path: Mapping[str, Any]
    query: Mapping[str, str]
    accept: str
    body: Mapping[str, Any]

    def integer(self, name: str, default: int) -> int:
        """A number of the query; nonsense counts as the default, as both APIs have it."""
        text = self.query.get(name, "")
        return int(text) if text.isdecimal() else default


Handler: TypeAlias = Callable[[Call], Answer]


class Manners(Protocol):
    """How one API greets and refuses."""

    def person(self, request: Request) -> Person:
        """Who asks. Raises Refusal."""
        ...

    def unreadable(self, why: str) -> Refusal:
        """For a body that is no JSON object."""
        ...

    def headers(self) -> Mapping[str, str]:
        """What every answer carries."""
        ...


def endpoint(world: World, manners: Manners, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A handler as Starlette wants it; it runs in a thread, and alone."""

    def answer(call: Call) -> Answer:
        with world.lock:
            return handler(call)

    async def respond(request: Request) -> Response:
        try:
            person = manners.person(request)
            body = _object(await _read(request, manners), manners)
            return response(await to_thread.run_sync(answer, _call(world, person, request, body)), manners)
        except Refusal as refusal:
            return response(Answer(refusal.body, refusal.status, refusal.headers), manners)

    return respond


def response(answer: Answer, manners: Manners) -> Response:
    headers = {**manners.headers(), **answer.headers}
    if answer.body is None:
        return Response(status_code=answer.status, headers=headers)
    if isinstance(answer.body, bytes):
        return Response(answer.body, answer.status, headers, answer.media)
    return JSONResponse(answer.body, answer.status, headers)


def _call(world: World, person: Person, request: Request, body: Mapping[str, Any]) -> Call:
    return Call(
        world=world,
        person=person,
        site=f"{request.url.scheme}://{request.url.netloc}",
        base=f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '')}",
        url=str(request.url.replace(query="")).rstrip("?"),
        method=request.method,
        path=request.path_params,
        query=request.query_params,
        accept=request.headers.get("accept", ""),
        body=body,
    )


async def _read(request: Request, manners: Manners) -> bytes:
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > MAX_BODY:
            raise manners.unreadable(f"the body has more than {MAX_BODY} bytes")
    return bytes(parts)


def _object(body: bytes, manners: Manners) -> Mapping[str, Any]:
    if not body.strip():
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise manners.unreadable("the body is no JSON") from None
    if isinstance(found, list):
        # GitHub takes a bare list of labels where it takes {"labels": [...]}.
        return {"": found}
    if not isinstance(found, dict):
        raise manners.unreadable("the body is no JSON object")
    return found
