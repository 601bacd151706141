"""Who is let in: tokens are made, recognised, and taken back; a refused one is recorded."""

import hmac
from collections.abc import Callable, Collection
from dataclasses import dataclass

from squidbot.core.domain.audit import RecordKind
from squidbot.core.domain.callers import OPERATOR, Caller, Origin
from squidbot.core.domain.errors import InvalidArguments, NotFound, Problem
from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.members import RIGHTS, NewToken, Principal, Right, TokenRecord
from squidbot.core.domain.sign_in import member_id, new_token, parts_of
from squidbot.core.domain.text import visible
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import Clock, Identity, TokenStore
from squidbot.core.services.hub import Hub
from squidbot.core.services.recording import Recorder
from squidbot.core.services.refusals import Refusals

_STALE = 1.0
"""Seconds after which a token is looked up again: so long, at most, does a revocation take to be felt."""
_MOST_KNOWN = 10_000
_LONGEST_NAME = 64
_NOBODY = "0" * 64
"""What the secret of a token that does not exist is compared with, so that it takes as long as with one that does."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a token was not accepted: for the record, not for whoever showed it."""

    reason: str
    token: str | None = None
    """The id that it claims, if it has the form of one of ours."""


NO_TOKEN = Refused("no token was sent")


class Admission:
    """Tokens of this gateway, and, where the settings name an issuer, of that one. Nothing is read when it is built."""

    def __init__(
        self,
        store: TokenStore,
        *,
        recorder: Recorder,
        clock: Clock,
        roles: Callable[[], Collection[str]],
        hub: Hub | None = None,
        identity: Identity | None = None,
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._roles = roles
        self._hub = hub
        self._identity = identity
        self._known: dict[str, tuple[TokenRecord, float]] = {}
        # Many a program only asks whether a token is needed: it must not hide those who try one.
        self._without = Refusals(recorder, "sign_in")
        self._refusals = Refusals(recorder, "sign_in")

    # Letting in

    async def admit(self, token: str) -> Principal | None:
        """Whoever stands behind a token, None if it is not good. Raises NotRecorded."""
        found = await self.judge(token)
        return found if isinstance(found, Principal) else None

    async def judge(self, token: str) -> Principal | Refused:
        """Whoever stands behind a token, or why nobody does. Raises NotRecorded."""
        parts = parts_of(token)
        if parts is None:
            return await self._vouched(token)
        record = await self._lookup(parts.id)
        # Compared whether or not there is such a token: the time tells nobody which ids exist.
        fits = hmac.compare_digest(parts.digest, record.digest if record is not None else _NOBODY)
        if record is None or not fits:
            return Refused("there is no such token", parts.id)
        return self._standing(record)

    def on_record(self, principal: Principal) -> TokenRecord | None:
        """The record behind somebody who was let in, if it was just looked at and still lets them in; never waits."""
        known = self._known.get(principal.token)
        if known is None or self._clock.monotonic() - known[1] >= _STALE:
            return None
        record = known[0]
        if record.revoked or (record.expires is not None and record.expires <= self._clock.time()):
            return None
        return record if record.role is None or self._is_role(record.role) else None

    async def still(self, principal: Principal) -> bool:
        """Whether somebody who was let in would be let in now. Raises NotRecorded."""
        if principal.expires is not None and principal.expires <= self._clock.time():
            return False
        if principal.role is not None and not self._is_role(principal.role):
            return False
        if principal.token.startswith("oidc:"):
            return True
        record = await self._lookup(principal.token)
        return record is not None and isinstance(self._standing(record), Principal)

    async def refuse(self, refused: Refused, *, origin: Origin, address: str | None = None) -> None:
        """Record a sign-in that failed, unless there are too many of them. Raises nothing: nobody is let in anyway."""
        refusals = self._without if refused is NO_TOKEN else self._refusals
        what = {"id": refused.token, "address": address}
        await refusals.note(Caller("", origin=origin), refused.reason, what)

    async def note(self, principal: Principal, *, origin: Origin, address: str | None = None) -> None:
        """Record a sign-in that somebody made on purpose, as on the dashboard. Raises NotRecorded."""
        caller = Caller(principal.standing, member=principal.member, origin=origin)
        arguments = {"id": principal.token, "address": address}
        attempt = self._recorder.attempt(caller, ToolId("", "sign_in"), arguments, revision="", kind="sign_in")
        await self._recorder.done(attempt, None)

    # Making and taking back

    async def create(self, by: Caller, wanted: str, *, name: str, expires: float | None = None) -> NewToken:
        """Make a token for a role or a right; it can be seen only now. `expires` in seconds since 1970.

        Raises NotFound for what is no role, InvalidArguments, NotRecorded.
        """
        role, right = self._role_or_right(wanted)
        self._check(name, expires)
        token, parts = new_token()
        record = TokenRecord(
            id=parts.id,
            member=member_id(name),
            name=name,
            digest=parts.digest,
            role=role,
            right=right,
            created=self._clock.timestamp(),
            expires=expires,
        )
        arguments = {"id": record.id, "member": record.member, "name": name, "for": wanted, "expires": expires}
        attempt = self._recorder.attempt(by, ToolId("", "tokens.create"), arguments, revision="", kind=_KIND)
        await self._store.add_token(record, record=self._recorder.record(attempt, outcome="ok"))
        self._tell(record.id, revoked=False)
        return NewToken(record, token)

    async def revoke(self, by: Caller, name: str) -> TokenRecord:
        """Take a token back: from now on it is nobody's. Raises NotFound, NotRecorded."""
        found = await self._store.find_token(name)
        if found is None:
            raise NotFound("token", name)
        arguments = {"id": found.id, "member": found.member, "name": found.name, "for": found.standing}
        attempt = self._recorder.attempt(by, ToolId("", "tokens.revoke"), arguments, revision="", kind=_KIND)
        if not found.revoked:
            await self._store.revoke_token(name, record=self._recorder.record(attempt, outcome="ok"))
        self._known.pop(name, None)
        self._tell(name, revoked=True)
        return await self._store.find_token(name) or found

    async def list(self) -> list[TokenRecord]:
        """All tokens, the newest last; also those that are revoked or past their time. Raises NotRecorded."""
        return [*await self._store.tokens()]

    # Inside

    async def _lookup(self, name: str) -> TokenRecord | None:
        now = self._clock.monotonic()
        known = self._known.get(name)
        if known is not None and now - known[1] < _STALE:
            return known[0]
        if known is not None:
            # One asks again; a crowd that comes meanwhile goes on with what was known a moment ago.
            self._known[name] = (known[0], now)
        record = await self._store.find_token(name)
        if record is None:
            # Not remembered: one that another process makes in a moment must be good at once.
            self._known.pop(name, None)
            return None
        if known is not None and known[0] == record:
            record = known[0]  # the same one, so that who was let in by it sees at once that nothing has changed
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[name] = (record, now)
        return record

    def _standing(self, record: TokenRecord) -> Principal | Refused:
        if record.revoked:
            return Refused("the token is revoked", record.id)
        if record.expires is not None and record.expires <= self._clock.time():
            return Refused("the token is past its time", record.id)
        if record.role is not None and not self._is_role(record.role):
            return Refused(f"there is no role {record.role!r} any more", record.id)
        return Principal(
            member=record.member,
            name=record.name,
            token=record.id,
            role=record.role,
            right=record.right,
            expires=record.expires,
        )

    async def _vouched(self, token: str) -> Principal | Refused:
        if self._identity is None:
            return Refused("it has not the form of a token")
        found = await self._identity.identify(token)
        if found is None:
            return Refused("neither a token of ours nor a valid one of the issuer")
        try:
            role, right = self._role_or_right(found.claimed)
        except NotFound:
            return Refused(f"the issuer says {found.claimed!r}, which is no role", f"oidc:{found.subject}")
        member = f"oidc:{found.subject}"
        return Principal(member, found.name, token=member, role=role, right=right, expires=found.expires)

    def _role_or_right(self, wanted: str) -> tuple[str | None, Right | None]:
        right = next((right for right in RIGHTS if right == wanted), None)
        if right is None and not self._is_role(wanted):
            raise NotFound("role", wanted, known=[*self._roles(), *RIGHTS])
        return (None, right) if right is not None else (wanted, None)

    def _is_role(self, name: str) -> bool:
        return name != OPERATOR and name in self._roles()

    def _check(self, name: str, expires: float | None) -> None:
        problems = []
        if not name.strip() or len(name) > _LONGEST_NAME or visible(name, newlines=False) != name:
            problems.append(Problem("name", f"must be 1 to {_LONGEST_NAME} visible characters: who will use the token"))
        if expires is not None and not self._clock.time() < expires < self._clock.time() + 100 * 365 * 86_400:
            problems.append(Problem("expires", "must be in the future, and within a hundred years"))
        if problems:
            raise InvalidArguments("the token cannot be made:", problems)

    def _tell(self, name: str, *, revoked: bool) -> None:
        if self._hub is not None:
            self._hub.publish(Happening("tokens", data={"id": name, "revoked": revoked}))


_KIND: RecordKind = "grant"
"""A token gives somebody a role: that is a grant."""
