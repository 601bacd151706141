"""A JSON API over HTTP for a bundled server: one origin, a deadline, bounded answers, and failures in words."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, TypeVar

import anyio
import httpx2
from pydantic import ValidationError

from squidbot.servers.limits import is_rate_limit, when_to_try_again
from squidbot.servers.refusal import Refused
from squidbot.servers.tools import Result

MAX_ANSWER: Final = 8_000_000
"""Decoded bytes of one answer; an API's pages are far below."""
_MAX_WORDS: Final = 600
"""Characters of an API's own message that are passed on."""
_MAX_HOPS: Final = 3
_VERBATIM: Final = frozenset({307, 308})
_MOVED: Final = frozenset({301, 302, 303}) | _VERBATIM

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Query = Mapping[str, str | int]
Parsed = TypeVar("Parsed", bound=Result)


class ApiFailed(Refused):
    """What an API, or the way to it, did not do; the message is for the model, and has no secret in it."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status, or None if there was no answer."""


@dataclass(frozen=True, slots=True)
class Api:
    """Which API, how it is addressed, and how it speaks of what went wrong."""

    name: str
    url: str
    """All requests go below it, and nowhere else."""
    url_from: str
    """The environment variable that says it, to name in hints."""
    token_from: str
    """The environment variable or variables that hold the credentials, to name in hints."""
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    explain: Callable[[Any], str]
    """The API's own message in the JSON of a failure; empty if there is none."""
    deadline: float = 30.0
    """Seconds for one request, from connecting to the last byte."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A good answer."""

    data: Any
    """The JSON; None if there was no body."""
    next_page: httpx2.URL | None
    """Where the Link header says that the list goes on, if it is this API."""


class RestClient:
    """Requests to one API. Every method may raise ApiFailed, and nothing else but cancellation."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._base = httpx2.URL(api.url.rstrip("/"))
        self._http = httpx2.AsyncClient(headers=dict(api.headers), timeout=api.deadline, follow_redirects=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, query: Query | None = None, *, accept: str | None = None) -> Any:
        return (await self.request("GET", path, query=query, accept=accept)).data

    async def send(self, method: Method, path: str, body: Mapping[str, Any]) -> Any:
        return (await self.request(method, path, body=body)).data

    async def request(
        self,
        method: Method,
        path: str | httpx2.URL,
        *,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        accept: str | None = None,
    ) -> Reply:
        """One request and its JSON."""
        response, content, whole = await self._exchange(method, path, query=query, body=body, accept=accept)
        if not whole:
            raise ApiFailed(
                f"{self.api.name} answered with more than {MAX_ANSWER} bytes: ask for less, such as a smaller limit"
            )
        return Reply(self._json(response, content), self._next_page(response))

    async def text(self, path: str, *, accept: str, limit: int) -> tuple[str, bool]:
        """The first `limit` bytes of a text, and whether that is all of it."""
        _, content, whole = await self._exchange("GET", path, accept=accept, limit=limit)
        return content.decode(errors="replace"), whole

    async def pages(self, path: str, query: Query, *, most: int) -> AsyncIterator[Reply]:
        """The pages of a list, following its Link headers to at most `most` of them."""
        reply = await self.request("GET", path, query=query)
        yield reply
        for _ in range(most - 1):
            if reply.next_page is None:
                return
            reply = await self.request("GET", reply.next_page)
            yield reply

    def parsed(self, result: type[Parsed], data: Any, **more: Any) -> Parsed:
        """A result from the API's JSON and from what else is known."""
        try:
            return result.model_validate({**(data if isinstance(data, dict) else {}), **more})
        except ValidationError as error:
            where = ", ".join(sorted({".".join(map(str, problem["loc"])) for problem in error.errors()}))
            raise ApiFailed(
                f"{self.api.name} answered without what it should have, or in another form: {where}"
            ) from None

    async def _exchange(
        self,
        method: Method,
        path: str | httpx2.URL,
        *,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        accept: str | None = None,
        limit: int = MAX_ANSWER,
    ) -> tuple[httpx2.Response, bytes, bool]:
        try:
            with anyio.fail_after(self.api.deadline):
                request = self._http.build_request(
                    method,
                    self._below(path) if isinstance(path, str) else path,
                    params=dict(query) if query else None,
                    json=dict(body) if body is not None else None,
                    headers={"accept": accept} if accept else None,
                )
                return await self._followed(request, limit)
        except (TimeoutError, httpx2.TimeoutException):
            raise ApiFailed(
                f"{self.api.name} at {self._place} did not answer within {self.api.deadline:g} s"
                + ("" if method == "GET" else "; whether it did what was asked is not known: look before trying again")
            ) from None
        except (httpx2.RequestError, httpx2.InvalidURL, OSError) as error:
            raise ApiFailed(
                self._without_secrets(
                    f"cannot reach {self.api.name} at {self._place} ({str(error) or type(error).__name__}): "
                    f"check {self.api.url_from} and the network"
                )
            ) from None

    async def _followed(self, request: httpx2.Request, limit: int) -> tuple[httpx2.Response, bytes, bool]:
        """The answer at the end of redirects within the API; the credentials go nowhere else."""
        for _ in range(_MAX_HOPS + 1):
            response = await self._http.send(request, stream=True)
            try:
                content, whole = await _read(response, limit if response.is_success else MAX_ANSWER)
            finally:
                await response.aclose()
            if response.status_code not in _MOVED or "location" not in response.headers:
                if not response.is_success:
                    raise self._failure(response, content)
                return response, content, whole
            request = self._redirected(request, response)
        raise ApiFailed(f"{self.api.name} redirects again and again: check {self.api.url_from}")

    def _redirected(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Request:
        target = request.url.join(response.headers["location"])
        if not self._is_ours(target):
            raise ApiFailed(
                f"{self.api.name} redirects to {target.scheme}://{target.host}, and the token is not sent to another "
                f"place: check {self.api.url_from}, and the spelling of what was asked for",
                status=response.status_code,
            )
        if request.method != "GET" and response.status_code not in _VERBATIM:
            raise ApiFailed(
                f"{self.api.name} says that this has moved to {target.path!r}: use its new name",
                status=response.status_code,
            )
        return httpx2.Request(request.method, target, headers=request.headers, content=request.content)

    def _failure(self, response: httpx2.Response, content: bytes) -> ApiFailed:
        status = response.status_code
        try:
            said = self.api.explain(json.loads(content))
        except (ValueError, RecursionError):
            said = ""
        said = self._without_secrets(" ".join(said.split()))[:_MAX_WORDS]
        return ApiFailed(self._in_words(status, said, response.headers), status=status)

    def _in_words(self, status: int, said: str, headers: Mapping[str, str]) -> str:
        name, because = self.api.name, f": {said}" if said else ""
        if is_rate_limit(status, headers, said):
            return f"{name}'s rate limit is used up: {when_to_try_again(headers)}"
        match status:
            case 401:
                return f"{name} does not accept the credentials{because}: check {self.api.token_from}"
            case 403:
                return f"{name} does not allow this to the owner of {self.api.token_from}{because}"
            case 404:
                owner = self.api.token_from
                return f"{name} has no such thing, or does not show it to the owner of {owner}{because}: check its name"
            case _ if status >= 500:
                when = when_to_try_again(headers) if "retry-after" in headers else "try again later"
                return f"{name} failed with status {status}{because}: {when}"
            case _:
                return f"{name} refuses this with status {status}{because}"

    def _json(self, response: httpx2.Response, content: bytes) -> Any:
        if not content.strip():
            return None
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "no content type").partition(";")[0]
            raise ApiFailed(
                f"{self.api.name} at {self._place} answered with something that is not JSON ({kind}): "
                f"check that {self.api.url_from} is the address of its API"
            ) from None

    def _next_page(self, response: httpx2.Response) -> httpx2.URL | None:
        link = response.links.get("next", {}).get("url")
        target = response.url.join(link) if link else None
        return target if target is not None and self._is_ours(target) else None

    def _below(self, path: str) -> httpx2.URL:
        return self._base.copy_with(path=self._base.path.rstrip("/") + path)

    def _is_ours(self, url: httpx2.URL) -> bool:
        return (url.scheme, url.host, url.port) == (self._base.scheme, self._base.host, self._base.port)

    @property
    def _place(self) -> str:
        return f"{self._base.scheme}://{self._base.netloc.decode()}{self._base.path}"

    def _without_secrets(self, text: str) -> str:
        for secret in self.api.secrets:
            text = text.replace(secret, "***")
        return text


def objects(data: Any, key: str | None = None) -> list[dict[str, Any]]:
    """The objects of a list, or of the list that an answer has under `key`; whatever else is there is passed over."""
    items = data if key is None else data.get(key) if isinstance(data, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def count(value: Any) -> int:
    """A number of things, and 0 for what is none."""
    return value if isinstance(value, int) else 0


def cut(text: str, limit: int) -> str:
    """The text, or its beginning with a note of how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]}\n[cut: {len(text) - limit} more characters]"


async def together(*calls: Callable[[], Awaitable[Any]]) -> list[Any]:
    """All of them at once; the first failure ends the others and is raised as itself, not in a group."""
    results: list[Any] = [None] * len(calls)

    async def keep(place: int) -> None:
        results[place] = await calls[place]()

    try:
        async with anyio.create_task_group() as tasks:
            for place in range(len(calls)):
                tasks.start_soon(keep, place)
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    return results


async def _read(response: httpx2.Response, limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes of the body, and whether that is all."""
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > limit:
            return bytes(content[:limit]), False
    return bytes(content), True
