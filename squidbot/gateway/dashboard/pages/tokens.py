"""Tokens: which there are, a new one that is shown once, and an old one taken back."""

from dataclasses import dataclass
from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from squidbot.core.domain.errors import InvalidArguments, NotFound
from squidbot.core.domain.members import NewToken, TokenRecord
from squidbot.core.domain.sign_in import span
from squidbot.gateway.auth import base_url
from squidbot.gateway.dashboard.gate import Visit
from squidbot.gateway.dashboard.view import Message
from squidbot.gateway.dashboard.words import moment


@dataclass(frozen=True, slots=True)
class Shown:
    """One token as the page shows it."""

    id: str
    name: str
    role: str | None
    right: str | None
    state: str
    created: str
    expires: str | None

    @classmethod
    def of(cls, token: TokenRecord, now: float) -> Self:
        is_past = token.expires is not None and token.expires <= now
        return cls(
            id=token.id,
            name=token.name,
            role=token.role,
            right=token.right,
            state="revoked" if token.revoked else "expired" if is_past else "valid",
            created=token.created,
            expires=None if token.expires is None else moment(token.expires),
        )


@dataclass(frozen=True, slots=True)
class Made:
    """A token at the only moment at which it is seen."""

    name: str
    role: str | None
    token: str
    address: str
    """Where an agent uses it."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What the form was filled with."""

    name: str = ""
    opens: str = ""
    expires: str = "90d"


async def tokens(visit: Visit) -> Response:
    """All tokens, and the form for another."""
    return await _page(visit)


async def create(visit: Visit) -> Response:
    """Make one, and show it on this very page: it is never seen again."""
    draft = Draft(*(visit.form.get(name, "").strip() for name in ("name", "opens", "expires")))
    kind, _, wanted = draft.opens.partition(":")
    seconds = span(draft.expires) if draft.expires else None
    if kind not in ("role", "right") or (draft.expires and seconds is None):
        return await _page(visit, draft=draft, say=Message("The form is not whole.", "bad"), status=422)
    expires = None if seconds is None else visit.hall.now() + seconds
    try:
        new = await visit.desk.create_token(visit.who, wanted, name=draft.name, expires=expires, origin="dashboard")
    except (InvalidArguments, NotFound) as error:
        return await _page(visit, draft=draft, say=Message(str(error), "bad", error.hint), status=422)
    return await _page(visit, new=new)


async def revoke(visit: Visit) -> Response:
    """Take one back."""
    gone = await visit.desk.revoke_token(visit.who, visit.request.path_params["id"], origin="dashboard")
    return await visit.go("/tokens", Message(f"The token of {gone.name!r} ({gone.id}) is revoked, from now on."))


def _address(request: Request) -> str:
    """The endpoint, as whoever sees this page reaches it: their browser knows, behind whatever proxy."""
    return f"{request.headers.get('origin') or base_url(request.scope)}/mcp"


async def _page(
    visit: Visit,
    *,
    new: NewToken | None = None,
    draft: Draft | None = None,
    say: Message | None = None,
    status: int = 200,
) -> Response:
    now = visit.hall.now()
    known = [Shown.of(token, now) for token in await visit.desk.tokens(visit.who)]
    mapper = await visit.desk.mapper(visit.who)
    return await visit.page(
        "tokens.html",
        "tokens",
        topics="tokens",
        status=status,
        say=say,
        tokens=[*reversed(known)],
        roles=list(mapper.roles),
        draft=draft or Draft(),
        made=None if new is None else Made(new.record.name, new.record.role, new.token, _address(visit.request)),
    )
