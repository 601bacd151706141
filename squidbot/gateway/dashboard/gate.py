"""The way into a page: who asks, whether the request is their own, and what is said when something stands against it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from squidbot.core.domain.errors import (
    InvalidArguments,
    NotAllowed,
    NotFound,
    NotRecorded,
    RateLimited,
    SquidbotError,
    ToolNotPermitted,
    UnknownTool,
)
from squidbot.core.domain.members import Principal
from squidbot.core.services.admission import Admission
from squidbot.core.services.desk import Desk
from squidbot.gateway.dashboard.seal import Seal
from squidbot.gateway.dashboard.sessions import Session, Sessions
from squidbot.gateway.dashboard.sign_in import SignIn
from squidbot.gateway.dashboard.view import Message, Tone, View

_NOTE = "squidbot_note"
_THEME = "squidbot_theme"
THEMES = ("light", "dark")
_MOST_BYTES = 1_000_000
_MOST_FIELDS = 500
_STATUS: tuple[tuple[type[SquidbotError], int], ...] = (
    (NotFound, 404),
    (UnknownTool, 404),
    (NotAllowed, 403),
    (ToolNotPermitted, 403),
    (InvalidArguments, 422),
    (RateLimited, 429),
    (NotRecorded, 503),
)


@dataclass(frozen=True, slots=True)
class Hall:
    """What every page has at hand."""

    desk: Desk
    admission: Admission
    sessions: Sessions
    sign_in: SignIn
    seal: Seal
    view: View
    now: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of somebody who is signed in; `form` has the fields of a POST."""

    request: Request
    hall: Hall
    session: Session
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def desk(self) -> Desk:
        return self.hall.desk

    @property
    def who(self) -> Principal:
        return self.session.principal

    def asked(self, name: str, longest: int = 400) -> str:
        """A word of the query, empty if it is not there."""
        return self.request.query_params.get(name, "")[:longest].strip()

    async def page(
        self,
        template: str,
        here: str,
        *,
        topics: str = "",
        status: int = 200,
        say: Message | None = None,
        **values: Any,
    ) -> Response:
        """A page for them, with what was left to be said."""
        note = await _read_note(self.request, self.hall.seal)
        html = self.hall.view.render(
            template,
            prefix=prefix_of(self.request),
            theme=theme_of(self.request),
            session=self.session,
            here=here,
            topics=topics,
            back=_here(self.request),
            messages=[message for message in (note, say) if message is not None],
            **values,
        )
        response = HTMLResponse(html, status)
        if note is not None:
            response.delete_cookie(_NOTE, path="/")
        return response

    async def go(self, path: str, message: Message | None = None) -> Response:
        """Send them to another page, where `message` is shown once."""
        response = RedirectResponse(prefix_of(self.request) + path, 303)
        if message is not None:
            value = {"text": message.text[:300], "kind": message.kind, "hint": (message.hint or "")[:300]}
            note = await self.hall.seal.close("note", value)
            response.set_cookie(
                _NOTE, note, max_age=60, path="/", httponly=True, samesite="strict", secure=is_secure(self.request)
            )
        return response


Page: TypeAlias = Callable[[Visit], Awaitable[Response]]
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


def looking(hall: Hall, page: Page) -> Handler:
    """A page that changes nothing, for whoever is signed in."""

    async def answer(request: Request) -> Response:
        try:
            session = await hall.sessions.find(request)
            if session is None:
                return _to_sign_in(request)
            return await page(Visit(request, hall, session))
        except SquidbotError as error:
            return problem_page(hall, request, error)

    return answer


def changing(hall: Hall, page: Page) -> Handler:
    """A form that was sent, by somebody who is signed in, from a page of this dashboard."""

    async def answer(request: Request) -> Response:
        try:
            check_origin(request)
            session = await hall.sessions.find(request)
            if session is None:
                return _to_sign_in(request)
            form = await form_of(request)
            if not session.said(form.get("csrf", "")):
                raise NotAllowed("this form is not from your session", hint="Load the page anew, and send it again.")
            return await page(Visit(request, hall, session, form))
        except SquidbotError as error:
            return problem_page(hall, request, error)

    return answer


def check_origin(request: Request) -> None:
    """Refuse what another site, or no page at all, sent here. Raises NotAllowed."""
    fetched_by = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    is_ours = fetched_by == "same-origin" if fetched_by is not None else origin is not None
    if origin is not None:
        is_ours = is_ours and bool(host) and urlsplit(origin).netloc.lower() == host.lower()
    if not is_ours:
        raise NotAllowed("this was not sent from a page of this dashboard", hint="Open the dashboard, and try there.")


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, of each name the last. Raises InvalidArguments."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise InvalidArguments("a form must be sent as application/x-www-form-urlencoded", [])
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                raise InvalidArguments(f"the form is larger than {_MOST_BYTES:,} bytes", [])
    except ClientDisconnect:
        raise InvalidArguments("the form did not arrive whole", []) from None
    try:
        found = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise InvalidArguments("the form cannot be read", []) from None
    # A browser sends every line end as two characters.
    return {name: values[-1].replace("\r\n", "\n") for name, values in found.items()}


def missing_page(hall: Hall) -> Callable[[Request, Exception], Awaitable[Response]]:
    """What is said of an address that is none of ours."""

    async def answer(request: Request, _error: Exception) -> Response:
        error = SquidbotError("there is no such page")
        return problem_page(hall, request, error, status=404)

    return answer


def problem_page(hall: Hall, request: Request, error: SquidbotError, *, status: int | None = None) -> Response:
    """What is said when something stands against a request."""
    status = status or next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    text = str(error)
    html = hall.view.render(
        "problem.html",
        prefix=prefix_of(request),
        theme=theme_of(request),
        problem=Message(text[:1].upper() + text[1:], "bad", error.hint),
    )
    return HTMLResponse(html, status)


def prefix_of(request: Request) -> str:
    """Where the dashboard is mounted: nothing at the root."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def theme_of(request: Request) -> str:
    """The colours that somebody chose; empty for those of their system."""
    chosen = request.cookies.get(_THEME, "")
    return chosen if chosen in THEMES else ""


def keep_theme(response: Response, theme: str, *, secure: bool) -> None:
    """Remember the colours for a year, or forget them."""
    if theme in THEMES:
        response.set_cookie(
            _THEME, theme, max_age=31_536_000, path="/", httponly=True, samesite="strict", secure=secure
        )
    else:
        response.delete_cookie(_THEME, path="/", httponly=True, samesite="strict", secure=secure)


def is_secure(request: Request) -> bool:
    """Whether the browser speaks TLS with us, or with a proxy that tells us so."""
    return request.url.scheme == "https"


def own_path(path: str) -> str:
    """`path` if it is one of this site's, else the front page: nobody is sent elsewhere."""
    is_own = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if is_own else "/"


async def _read_note(request: Request, seal: Seal) -> Message | None:
    cookie = request.cookies.get(_NOTE)
    kept = await seal.open("note", cookie) if cookie else None
    if kept is None:
        return None
    kind: Tone = kept["kind"]
    return Message(kept["text"], kind, kept["hint"] or None)


def _to_sign_in(request: Request) -> Response:
    wanted = _here(request) if request.method == "GET" else "/"
    asks = "" if wanted == "/" else f"?next={quote(wanted, safe='')}"
    response = RedirectResponse(f"{prefix_of(request)}/sign-in{asks}", 303)
    Sessions.end(response, secure=is_secure(request))
    return response


def _here(request: Request) -> str:
    """The address of the page itself, also of one that a form's answer drew."""
    path = str(request.scope["path"]).removeprefix(prefix_of(request)).removesuffix("/verify") or "/"
    query = request.url.query
    return own_path(f"{path}?{query}" if query else path)
