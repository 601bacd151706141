"""Who stands behind a token: a member of the team in one role, or somebody with a right on the gateway itself."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from squidbot.core.domain.callers import Caller, Origin
from squidbot.core.domain.errors import NotAllowed

Right: TypeAlias = Literal["admin", "auditor"]
"""On the HTTP API and the dashboard: an auditor may look, an admin may change. Neither is a role, neither has tools."""
RIGHTS: tuple[Right, ...] = ("admin", "auditor")
Need: TypeAlias = Literal["look", "change"]
"""What something on the gateway takes."""
_ENOUGH: dict[Need, frozenset[Right]] = {"look": frozenset({"admin", "auditor"}), "change": frozenset({"admin"})}


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody whose token was accepted; exactly one of `role` and `right` is given."""

    member: str
    """The id in `squad_members`, or for a token of an OIDC issuer `oidc:SUBJECT`."""
    name: str
    token: str
    """The id of the token that was shown, never the token itself."""
    role: str | None = None
    right: Right | None = None
    expires: float | None = None
    """Seconds since 1970."""

    @property
    def standing(self) -> str:
        """The role or the right, whichever it is."""
        return self.role or self.right or ""

    def require(self, need: Need) -> None:
        """Raise NotAllowed unless this somebody may: the one place where rights are decided."""
        if self.right not in _ENOUGH[need]:
            wanted = " or ".join(repr(right) for right in RIGHTS if right in _ENOUGH[need])
            what = "looked at" if need == "look" else "changed"
            hint = f"Use a token with the right {wanted}; a role's token is for its tools alone."
            raise NotAllowed(f"this can be {what} only by {wanted}, and this token is for {self.standing!r}", hint=hint)

    def caller(self, origin: Origin) -> Caller:
        """Who asks, for the guarded door. Somebody without a role has no role there: nothing."""
        return Caller(self.role or "", member=self.member, origin=origin)


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is kept of a token: never the token itself, only what it is compared with."""

    id: str
    member: str
    name: str
    """Of the member."""
    digest: str
    """SHA-256 of the token's secret part, in hex: the part has 256 random bits, so no salt is needed."""
    role: str | None
    right: Right | None
    created: str
    expires: float | None
    revoked: bool = False

    @property
    def standing(self) -> str:
        """The role or the right, whichever it is."""
        return self.role or self.right or ""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token at the only moment at which it can be seen."""

    record: TokenRecord
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identified:
    """Whom an issuer vouches for: `claimed` is the role, or the right, that it says they have."""

    subject: str
    name: str
    claimed: str
    expires: float
