"""Who is signed in: a sealed cookie that names the token it was opened with, and is worth no more than that token."""

import hmac
import secrets
from dataclasses import asdict, dataclass

from starlette.requests import Request
from starlette.responses import Response

from squidbot.core.domain.members import Principal
from squidbot.core.ports import Clock
from squidbot.core.services.admission import Admission
from squidbot.gateway.dashboard.seal import Seal

COOKIE = "squidbot_session"
_LIFETIME = 12 * 3_600
"""Seconds after which somebody signs in again, whatever their token says."""
_PURPOSE = "session"


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody at the dashboard, and the word that their forms carry."""

    principal: Principal
    csrf: str

    @property
    def name(self) -> str:
        return self.principal.name

    @property
    def right(self) -> str:
        return self.principal.standing

    @property
    def token(self) -> str:
        return self.principal.token

    @property
    def is_admin(self) -> bool:
        return self.principal.right == "admin"

    def said(self, word: str) -> bool:
        """Whether a form carries this session's word."""
        return hmac.compare_digest(word.encode("utf-8", "replace"), self.csrf.encode())


class Sessions:
    """Opens, finds and ends sessions; nothing is kept here, so that any worker knows them all."""

    def __init__(self, seal: Seal, *, admission: Admission, clock: Clock) -> None:
        self._seal = seal
        self._admission = admission
        self._clock = clock

    async def open(self, principal: Principal, response: Response, *, secure: bool) -> None:
        """Give a browser the cookie. Raises NotRecorded."""
        until = self._clock.time() + _LIFETIME
        until = min(until, principal.expires) if principal.expires is not None else until
        value = await self._seal.close(
            _PURPOSE, {"who": asdict(principal), "until": until, "once": secrets.token_hex(16)}
        )
        response.set_cookie(
            COOKIE,
            value,
            max_age=max(int(until - self._clock.time()), 1),
            path="/",
            secure=secure,
            httponly=True,
            samesite="strict",
        )

    async def find(self, request: Request) -> Session | None:
        """The session of a request, None if there is none or its token is no longer good. Raises NotRecorded."""
        cookie = request.cookies.get(COOKIE)
        kept = await self._seal.open(_PURPOSE, cookie) if cookie else None
        if kept is None or kept["until"] <= self._clock.time():
            return None
        principal = Principal(**kept["who"])
        if principal.right is None or not await self.is_good(principal):
            return None
        return Session(principal, await self._seal.word("csrf", kept["once"]))

    async def is_good(self, principal: Principal) -> bool:
        """Whether the token behind a session still lets in. Raises NotRecorded."""
        return await self._admission.still(principal)

    @staticmethod
    def end(response: Response, *, secure: bool) -> None:
        """Take the cookie back."""
        response.delete_cookie(COOKIE, path="/", secure=secure, httponly=True, samesite="strict")
