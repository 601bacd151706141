"""The outermost wall: foreign hosts and origins, too many at once, and the headers that every answer carries."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, TypeAlias

import anyio
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from squidbot.gateway.answers import error
from squidbot.gateway.hosts import HostRules
from squidbot.gateway.strangers import Foreign
from squidbot.gateway.walls import passed

MOST_AT_ONCE = 2_000
"""Requests and streams that are open at a time; one more is refused, and the others live on. Twice as many as the endpoint
has streams: those who only listen leave room for those who call."""
PROBES = frozenset({"/healthz", "/readyz"})
"""Asked by machines that know us by a bare address; they learn nothing but yes or no."""
STANDING_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""Set wherever the part that answers has not set its own."""
_SHARED = ("/mcp", "/api/")
"""Paths that a page of another, allowed origin may use: with a token in a header, never with a cookie."""
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, "
    "Mcp-Protocol-Version, Mcp-Method, Mcp-Name",
    "Access-Control-Max-Age": "600",
}
Note: TypeAlias = Callable[[Foreign, Scope, str], Awaitable[None]]
"""Puts on record what is foreign to us in a request, and what that says. Raises nothing."""
_EXPOSED = "Mcp-Session-Id, WWW-Authenticate, Retry-After"


class Guard:
    """Wraps the whole application. `on_fault` hears of what nobody expected; whoever asked hears only that it happened."""

    def __init__(
        self, app: ASGIApp, rules: HostRules, *, on_fault: Callable[[BaseException], None], note: Note
    ) -> None:
        self._app = app
        self._note = note
        self._rules = rules
        self._allows_host = lru_cache(maxsize=256)(rules.allows_host)
        self._on_fault = on_fault
        self.open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            return
        hosts, origins = _named(scope, b"host"), _named(scope, b"origin")
        refused = await self._refused(scope, hosts, origins)
        shared = self._shared_with(scope, hosts[0], origins[0]) if origins and refused is None and hosts else None
        answer = _Answer(send, shared)
        if shared is not None and _is_preflight(scope):
            refused = Response(status_code=204, headers=_PREFLIGHT)
        if refused is not None:
            await refused(scope, receive, answer)
            return
        passed(scope, None if origins else self)
        self.open += 1
        try:
            await self._app(scope, receive, answer)
        except Exception as fault:  # noqa: BLE001  the last one who can answer
            self._on_fault(fault)
            if not answer.begun:
                await _FAULT(scope, receive, answer)
        finally:
            self.open -= 1

    def still(self) -> bool:
        """Satisfies `Wall`: for the same host, and no other page, all that can change is how many there are."""
        return self.open < MOST_AT_ONCE

    def enter(self, work: anyio.CancelScope) -> None:
        del work
        self.open += 1

    def leave(self, work: anyio.CancelScope) -> None:
        del work
        self.open -= 1

    async def _refused(self, scope: Scope, hosts: list[str], origins: list[str]) -> Response | None:
        if scope["path"] in PROBES:
            return None
        if len(hosts) != 1 or not self._allows_host(hosts[0]):
            await self._note("host", scope, ", ".join(hosts))
            hint = "Add the name to 'gateway.allowed_hosts' in the settings, if it is one of this gateway's."
            return error(421, "foreign_host", "this gateway does not answer by that name", hint=hint)
        if len(origins) > 1 or (origins and not self._rules.allows_origin(origins[0], hosts[0])):
            await self._note("origin", scope, ", ".join(origins))
            hint = (
                "Add the origin to 'gateway.allowed_origins' in the settings, if its pages may speak to this gateway."
            )
            return error(403, "foreign_origin", "pages of that origin may not speak to this gateway", hint=hint)
        if self.open >= MOST_AT_ONCE:
            message = f"{MOST_AT_ONCE} requests are under way already"
            return error(503, "busy", message, hint="Try again in a moment.", headers={"Retry-After": "1"})
        return None

    def _shared_with(self, scope: Scope, host: str, origin: str) -> str | None:
        """The origin of another page that may read the answer."""
        if not scope["path"].startswith(_SHARED):
            return None
        own = self._rules.is_own(origin, host)
        return origin if not own and self._rules.allows_origin(origin, host) else None


class _Answer:
    """What goes out, with the headers that are missing."""

    def __init__(self, send: Send, shared: str | None) -> None:
        self._send = send
        self._shared = shared
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            raw = [*message.get("headers", ())]
            given = {name for name, _ in raw}
            raw += [pair for pair in STANDING_HEADERS if pair[0] not in given]
            if self._shared is not None:
                headers = MutableHeaders(raw=raw)
                headers["Access-Control-Allow-Origin"] = self._shared
                headers["Access-Control-Expose-Headers"] = _EXPOSED
                headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                headers.add_vary_header("Origin")
            message = {**message, "headers": raw}
        await self._send(message)


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and bool(_named(scope, b"access-control-request-method"))


def _named(scope: Scope, wanted: bytes) -> list[str]:
    """What the request says under a header, as often as it says it."""
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]


_FAULT: Any = error(500, "internal", "internal error", hint="This is a fault of squidbot; its log says where.")
