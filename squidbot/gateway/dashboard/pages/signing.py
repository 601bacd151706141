"""Signing in by token or by link, and out again; and the choice of colours."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from squidbot.core.domain.errors import SquidbotError
from squidbot.core.domain.members import Principal
from squidbot.core.services.admission import NO_TOKEN, Refused
from squidbot.gateway.dashboard.gate import (
    Hall,
    Visit,
    check_origin,
    form_of,
    is_secure,
    keep_theme,
    own_path,
    prefix_of,
    problem_page,
    theme_of,
)
from squidbot.gateway.dashboard.sessions import Sessions
from squidbot.gateway.dashboard.sign_in import CODE_LIFETIME
from squidbot.gateway.dashboard.view import Message

_WRONG = Message(
    "This token is not good here.", "bad", "Check that it was pasted whole; it may also be revoked or past its time."
)
_STALE = Message("This link was used, or is older than five minutes.", "bad", "Make another, or paste a token below.")


class Signing:
    """The pages for whoever is not signed in yet."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    async def ask(self, request: Request) -> Response:
        """The page to sign in on. A link's code changes nothing by being looked at: a button sends it."""
        try:
            if await self._hall.sessions.find(request) is not None and "code" not in request.query_params:
                return RedirectResponse(f"{prefix_of(request)}/", 303)
        except SquidbotError as error:
            return problem_page(self._hall, request, error)
        return self._form(request, code=request.query_params.get("code", "")[:4_096])

    async def take(self, request: Request) -> Response:
        """Let in whoever brings a good token with a right, or an unused code."""
        try:
            check_origin(request)
            form = await form_of(request)
            found = await self._judged(form.get("token", "").strip(), form.get("code", ""))
            if not isinstance(found, Principal):
                return self._form(request, problem=found, status=403)
            await self._hall.admission.note(found, origin="dashboard", address=_address(request))
            response = RedirectResponse(prefix_of(request) + own_path(form.get("next", "/")), 303)
            await self._hall.sessions.open(found, response, secure=is_secure(request))
        except SquidbotError as error:
            return problem_page(self._hall, request, error)
        return response

    async def link(self, request: Request) -> Response:
        """For a program that has a token with a right: a link that signs in once, as JSON."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        link = None
        try:
            if kind.lower() == "bearer":
                link = await self._hall.sign_in.link(str(request.base_url), token.strip())
                if link is None:
                    refused = Refused("a sign-in link was asked for with a token that has no right to one")
                    await self._hall.admission.refuse(refused, origin="dashboard", address=_address(request))
            else:
                await self._hall.admission.refuse(NO_TOKEN, origin="dashboard", address=_address(request))
        except SquidbotError as error:
            return JSONResponse({"error": {"code": "not_recorded", "message": str(error), "hint": error.hint}}, 503)
        if link is None:
            message = "a link is made only for a token with the right admin or auditor"
            error_json = {
                "code": "unauthorized",
                "message": message,
                "hint": "Send it as 'Authorization: Bearer TOKEN'.",
            }
            return JSONResponse({"error": error_json}, 401, headers={"WWW-Authenticate": "Bearer"})
        return JSONResponse({"link": link, "expires_in": CODE_LIFETIME})

    async def _judged(self, token: str, code: str) -> Principal | Message:
        if code:
            principal = await self._hall.sign_in.redeem(code)
            if principal is None:
                await self._hall.admission.refuse(
                    Refused("the sign-in link was used or is too old"), origin="dashboard"
                )
                return _STALE
            return principal
        found = await self._hall.admission.judge(token)
        if isinstance(found, Refused):
            await self._hall.admission.refuse(found, origin="dashboard")
            return _WRONG
        if found.right is None:
            await self._hall.admission.refuse(
                Refused(f"a token of the role {found.role!r} does not open the dashboard", found.token),
                origin="dashboard",
            )
            return Message(
                f"This token is for the role {found.role!r}: it opens /mcp for an agent, not the dashboard.",
                "bad",
                "Use a token with the right admin or auditor: squidbot tokens create --role auditor --name NAME",
            )
        return found

    def _form(self, request: Request, *, code: str = "", problem: Message | None = None, status: int = 200) -> Response:
        html = self._hall.view.render(
            "sign_in.html",
            prefix=prefix_of(request),
            theme=theme_of(request),
            code=code,
            problem=problem,
            next=own_path(request.query_params.get("next", "/")),
        )
        return HTMLResponse(html, status)


async def sign_out(visit: Visit) -> Response:
    """End the session of this browser."""
    response = RedirectResponse(f"{prefix_of(visit.request)}/sign-in", 303)
    Sessions.end(response, secure=is_secure(visit.request))
    return response


async def choose_theme(visit: Visit) -> Response:
    """Remember the colours that somebody likes."""
    response = await visit.go(own_path(visit.form.get("back", "/")))
    keep_theme(response, visit.form.get("theme", ""), secure=is_secure(visit.request))
    return response


def _address(request: Request) -> str | None:
    return request.client.host if request.client is not None else None
