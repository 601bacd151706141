"""The gateway as one ASGI application: who may come in, and where they go. It opens nothing by itself."""

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from squidbot.core.domain.errors import NotAllowed
from squidbot.core.ports import SchemaCheck
from squidbot.core.services.admission import Admission
from squidbot.core.services.desk import Desk
from squidbot.core.services.recording import Recorder
from squidbot.gateway.answers import JSON, error, refusal
from squidbot.gateway.api.application import API
from squidbot.gateway.auth import METADATA, Auth, FindSession, Present, metadata
from squidbot.gateway.bodies import Bodies
from squidbot.gateway.guard import Guard
from squidbot.gateway.hosts import HostRules
from squidbot.gateway.strangers import Strangers

_READ_ONLY = frozenset({"/healthz", "/readyz", "/metrics", METADATA})


def _overlook(_fault: BaseException) -> None: ...


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """What the gateway is made of. All of it is handed in, and opened and closed by whoever hands it in."""

    desk: Desk
    admission: Admission
    recorder: Recorder
    """For what comes to nothing before anybody is let in."""
    present: Present
    """Who is being answered; it has to be watched meanwhile."""
    schemas: SchemaCheck
    mcp: ASGIApp
    """For `/mcp` and `/mcp/{server}`, with the whole path; who asks is `scope["state"]["principal"]`."""
    dashboard: ASGIApp
    """For all other paths; it looks after its own sign-in."""
    exposition: Callable[[], tuple[bytes, str]]
    """The metrics, and the type of that text."""
    ready: Callable[[], bool]
    rules: HostRules = field(default_factory=HostRules)
    issuer: str | None = None
    """Whose tokens are accepted beside our own."""
    session: FindSession | None = None
    on_fault: Callable[[BaseException], None] = _overlook
    """Hears of what nobody expected."""


def create_app(parts: GatewayParts) -> ASGIApp:
    """All of it, behind the guard."""
    return Guard(_Crossing(parts), parts.rules, on_fault=parts.on_fault, note=Strangers(parts.recorder).note)


class _Crossing:
    """Where a path leads."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._api = API(parts.desk, parts.schemas)
        # It reads bodies itself: what it says of one that is too large is in its own protocol, and on record.
        self._mcp = Auth(parts.mcp, parts.admission, "mcp", parts.rules, parts.present)
        self._guarded_api = Auth(Bodies(self._api), parts.admission, "api", parts.rules, parts.present, parts.session)
        self._metrics = Auth(self._expose, parts.admission, "api", parts.rules, parts.present)
        self._dashboard = Bodies(parts.dashboard)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._way(scope)(scope, receive, send)

    def _way(self, scope: Scope) -> ASGIApp:
        path = scope["path"]
        if path in _READ_ONLY and scope["method"] not in ("GET", "HEAD"):
            return error(405, "not_allowed_here", "this path is only read", headers={"Allow": "GET, HEAD"})
        match path.split("/")[1] if path.startswith("/") else "":
            case "mcp":
                return self._mcp
            case "api":
                return self._api.document if path == "/api/v1/openapi.json" else self._guarded_api
            case "healthz" if path == "/healthz":
                return JSON({"status": "ok"})
            case "readyz" if path == "/readyz":
                ready = self._parts.ready()
                return JSON({"status": "ready" if ready else "starting"}, 200 if ready else 503)
            case "metrics" if path == "/metrics":
                return self._metrics
            case ".well-known":
                known = path == METADATA or path.startswith(f"{METADATA}/")
                return (
                    metadata(scope, self._parts.issuer) if known else error(404, "not_found", "there is nothing here")
                )
            case _:
                return self._dashboard

    async def _expose(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The metrics, for who may look."""
        try:
            scope["state"]["principal"].require("look")
        except NotAllowed as problem:
            await refusal(problem)(scope, receive, send)
            return
        text, kind = self._parts.exposition()
        await Response(text, media_type=kind)(scope, receive, send)
