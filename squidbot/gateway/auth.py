"""Who asks: a token in the Authorization header becomes a Principal, or the answer is 401 with the way to get one."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from squidbot.core.domain.callers import Origin
from squidbot.core.domain.errors import NotRecorded
from squidbot.core.domain.members import Principal, TokenRecord
from squidbot.core.domain.sign_in import PREFIX
from squidbot.core.services.admission import NO_TOKEN, Admission, Refused
from squidbot.gateway.answers import JSON, error, refusal
from squidbot.gateway.hosts import HostRules
from squidbot.gateway.walls import passed

METADATA = "/.well-known/oauth-protected-resource"
_PATIENCE = 5.0
"""Seconds after which, and then again and again, is asked whether whoever is being answered is still let in."""
_IN_QUERY = frozenset({"access_token", "token", "api_key", "apikey", "bearer", "authorization"})
_LONGEST = 16_384
_SAFE = frozenset({"GET", "HEAD"})
FindSession = Callable[[Request], Awaitable[Principal | None]]
"""Whoever is signed in at the dashboard, by the cookie of a request. Raises NotRecorded."""


class Present:
    """Everybody who is being answered, and not longer than their token is good: a stream ends when it is revoked."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._scopes: dict[anyio.CancelScope, Principal] = {}

    @contextmanager
    def as_long_as_welcome(self, who: Principal) -> Iterator[None]:
        """What is done within is cancelled when `who` is no longer let in."""
        with anyio.CancelScope() as work:
            self.enter(work, who)
            try:
                yield
            finally:
                self.leave(work)

    def enter(self, work: anyio.CancelScope, who: Principal) -> None:
        """Somebody is being answered, until `leave`."""
        self._scopes[work] = who

    def leave(self, work: anyio.CancelScope) -> None:
        del self._scopes[work]

    async def watch(self) -> None:
        """Look again and again, for as long as this runs, whether all of them would be let in now."""
        while True:
            await anyio.sleep(_PATIENCE)
            for who in set(self._scopes.values()):
                try:
                    is_welcome = await self._admission.still(who)
                except NotRecorded:
                    continue
                if not is_welcome:
                    for scope in [scope for scope, present in self._scopes.items() if present == who]:
                        scope.cancel()


@dataclass(frozen=True, slots=True)
class _LetIn:
    """Satisfies `Wall`: the same token is good as long as its record is known to be the same."""

    who: Principal
    record: TokenRecord
    admission: Admission
    present: Present

    def still(self) -> bool:
        return self.admission.on_record(self.who) is self.record

    def enter(self, work: anyio.CancelScope) -> None:
        self.present.enter(work, self.who)

    def leave(self, work: anyio.CancelScope) -> None:
        self.present.leave(work)


@dataclass(frozen=True, slots=True)
class Auth:
    """Wraps what only those who are let in may reach, and puts the `Principal` into the scope's state.

    `session` is for the API alone, so that a page of the dashboard can use it; a cookie never opens `/mcp`.
    """

    app: ASGIApp
    admission: Admission
    origin: Origin
    rules: HostRules
    present: "Present"
    session: FindSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            found = await self._who(scope)
        except NotRecorded as problem:
            await refusal(problem)(scope, receive, send)
            return
        if isinstance(found, Response):
            await found(scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = found
        passed(scope, self._wall(found))
        with self.present.as_long_as_welcome(found):
            await self.app(scope, receive, send)

    def _wall(self, who: Principal) -> "_LetIn | None":
        record = self.admission.on_record(who)
        return None if record is None else _LetIn(who, record, self.admission, self.present)

    async def _who(self, scope: Scope) -> Principal | Response:
        headers = Headers(scope=scope)
        if _in_query(scope):
            return await self._refused(scope, Refused("a token was sent in the query, where logs keep it"), "in_query")
        given = headers.getlist("authorization")
        if not given:
            return await self._signed_in(scope, headers) or await self._refused(scope, NO_TOKEN)
        token = _bearer(given)
        judged = Refused("no bearer token was sent") if token is None else await self.admission.judge(token)
        return judged if isinstance(judged, Principal) else await self._refused(scope, judged, "invalid_token")

    async def _signed_in(self, scope: Scope, headers: Headers) -> Principal | None:
        """By the cookie of the dashboard. What changes something must come from a page of ours."""
        if self.session is None:
            return None
        origin = headers.get("origin")
        if scope["method"] not in _SAFE and not (origin and self.rules.is_own(origin, headers.get("host", ""))):
            return None
        return await self.session(Request(scope))

    async def _refused(self, scope: Scope, refused: Refused, code: str | None = None) -> Response:
        client = scope.get("client")
        await self.admission.refuse(refused, origin=self.origin, address=client[0] if client else None)
        return unauthorized(scope, code)


def unauthorized(scope: Scope, code: str | None = None) -> Response:
    """401, with where to read which tokens are accepted (RFC 9728)."""
    challenge = f'Bearer realm="squidbot", resource_metadata="{base_url(scope)}{METADATA}{_resource(scope["path"])}"'
    if code == "invalid_token":
        challenge += ', error="invalid_token"'
    elif code == "in_query":
        challenge += ', error="invalid_request", error_description="send the token in the Authorization header"'
    message = "this token is not good here" if code == "invalid_token" else "a token is needed"
    hint = "Send 'Authorization: Bearer TOKEN'; 'squidbot tokens create --role ROLE --name NAME' makes a token."
    return error(401, "unauthorized", message, hint=hint, headers={"WWW-Authenticate": challenge})


def metadata(scope: Scope, issuer: str | None) -> Response:
    """What is protected here, and whose tokens open it: the same for every path, so that it tells of no server."""
    resource = scope["path"].removeprefix(METADATA) or "/mcp"
    if resource != _resource(resource):
        return error(404, "not_found", "there is nothing here")
    document = {
        "resource": f"{base_url(scope)}{resource}",
        "resource_name": "squidbot",
        "bearer_methods_supported": ["header"],
        "authorization_servers": [issuer] if issuer is not None else [],
    }
    if issuer is None:
        # Told apart from a list of none: there is nobody to ask, tokens are handed out by hand.
        del document["authorization_servers"]
    return JSON(document)


def base_url(scope: Scope) -> str:
    """How whoever asks reaches us; the name has been checked."""
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "localhost")
    return f"{scope.get('scheme', 'http')}://{host}"


def _resource(path: str) -> str:
    """The protected part that a path belongs to: `/mcp`, or one server's part of it."""
    parts = path.split("/")
    if len(parts) == 3 and parts[1] == "mcp" and parts[2] and len(parts[2]) <= 64:
        name = parts[2]
        if name.isascii() and all(character.isalnum() or character in "_.-" for character in name):
            return f"/mcp/{name}"
    return "/mcp"


def _bearer(given: list[str]) -> str | None:
    if len(given) != 1 or len(given[0]) > _LONGEST:
        return None
    scheme, _, token = given[0].partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _in_query(scope: Scope) -> bool:
    query = scope.get("query_string", b"").decode("latin-1")
    if not query:
        return False
    words = parse_qsl(query, keep_blank_values=True)
    return any(name.lower() in _IN_QUERY or value.startswith(PREFIX) for name, value in words)
