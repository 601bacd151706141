"""The dashboard as one ASGI application: routes, headers that keep a page to itself, and what ends with it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from squidbot.core.domain.members import Principal
from squidbot.core.ports import Clock
from squidbot.core.services.admission import Admission
from squidbot.core.services.desk import Desk
from squidbot.core.services.hub import Hub
from squidbot.gateway.dashboard.assets import Assets
from squidbot.gateway.dashboard.events import Events
from squidbot.gateway.dashboard.gate import Hall, Page, changing, looking, missing_page
from squidbot.gateway.dashboard.pages import alerts, calls, overview, roles, servers, signing, tokens, tools
from squidbot.gateway.dashboard.seal import Seal
from squidbot.gateway.dashboard.sessions import Sessions
from squidbot.gateway.dashboard.sign_in import SignIn
from squidbot.gateway.dashboard.view import View

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": with that a browser hides the origin of a form, which is what tells ours from others'.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_LOOK: dict[str, Page] = {
    "/": overview.overview,
    "/servers": servers.servers,
    "/tools": tools.tools,
    "/tool": tools.tool,
    "/roles": roles.roles,
    "/explain": roles.explain,
    "/calls": calls.calls,
    "/call": calls.call,
    "/alerts": alerts.alerts,
    "/tokens": tokens.tokens,
}
_CHANGE: dict[str, Page] = {
    "/servers/{name}/restart": servers.restart,
    "/tool": tools.try_tool,
    "/grants": roles.change,
    "/calls/verify": calls.verify,
    "/tokens": tokens.create,
    "/tokens/{id}/revoke": tokens.revoke,
    "/theme": signing.choose_theme,
    "/sign-out": signing.sign_out,
}


@dataclass(frozen=True, slots=True)
class DashboardParts:
    """What the dashboard is handed. `key` gives 32 bytes that all gateways of one database share."""

    desk: Desk
    admission: Admission
    hub: Hub
    clock: Clock
    key: Callable[[], Awaitable[bytes]]


class Dashboard:
    """An ASGI application. Run `listen` beside it, and call `close` before the server waits for open requests."""

    def __init__(self, parts: DashboardParts) -> None:
        seal, self._assets = Seal(parts.key), Assets()
        self.sign_in = SignIn(seal, admission=parts.admission, clock=parts.clock, hub=parts.hub)
        self._sessions = Sessions(seal, admission=parts.admission, clock=parts.clock)
        hall = Hall(
            desk=parts.desk,
            admission=parts.admission,
            sessions=self._sessions,
            sign_in=self.sign_in,
            seal=seal,
            view=View(self._assets),
            now=parts.clock.time,
        )
        self.events = Events(hall)
        self.routes = self._routes(hall)
        self._app = _with_headers(Starlette(routes=self.routes, exception_handlers={404: missing_page(hall)}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def who(self, request: Request) -> Principal | None:
        """Whoever is signed in, by the cookie of a request to any part of the gateway. Raises NotRecorded."""
        session = await self._sessions.find(request)
        return None if session is None else session.principal

    async def listen(self) -> None:
        """Hear of what concerns signing in at other workers, until cancelled."""
        await self.sign_in.listen()

    def close(self) -> None:
        """End all streams of events."""
        self.events.close()

    def _routes(self, hall: Hall) -> list[BaseRoute]:
        sign = signing.Signing(hall)
        return [
            *(Route(path, looking(hall, page), methods=["GET"]) for path, page in _LOOK.items()),
            *(Route(path, changing(hall, page), methods=["POST"]) for path, page in _CHANGE.items()),
            Route("/sign-in", sign.ask, methods=["GET"]),
            Route("/sign-in", sign.take, methods=["POST"]),
            Route("/sign-in/link", sign.link, methods=["POST"]),
            Route("/events", self.events.serve, methods=["GET"]),
            Route("/static/{digest}/{name}", self._assets.serve, methods=["GET"]),
        ]


def _with_headers(app: ASGIApp) -> ASGIApp:
    """Every answer carries the headers; what says nothing of keeping is not kept."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await app(scope, receive, sent if scope["type"] == "http" else send)

    return wrapped
