"""Tokens of an OIDC issuer that the settings name: signature, issuer, audience and time are checked, the role is a claim."""

from collections.abc import Mapping
from typing import Any

import jwt
from loguru import logger

from squidbot.adapters.identity.keys import IssuerKeys
from squidbot.core.domain.members import Identified
from squidbot.core.domain.text import visible
from squidbot.core.ports import Clock

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
)
"""All with a public key: `none`, and secrets that both sides share, are no signatures of an issuer."""
_LEEWAY = 30.0
"""Seconds by which two clocks may differ."""
_LONGEST_NAME = 64
_LONGEST_SUBJECT = 255


class OIDCIdentity:
    """Satisfies `Identity`. Nothing is asked of the issuer before the first token comes."""

    def __init__(self, *, issuer: str, audience: str, role_claim: str, clock: Clock) -> None:
        self._issuer = issuer
        self._audience = audience
        self._role_claim = role_claim
        self._keys = IssuerKeys(issuer, clock=clock)

    async def identify(self, token: str) -> Identified | None:
        """Who that is; None for any token that is not good, and the log says why."""
        try:
            claims = await self._claims(token)
        except jwt.PyJWTError as error:
            logger.debug("a token of the issuer is refused: {}", error)
            return None
        subject, claimed = claims.get("sub"), _one(_at(self._role_claim, claims))
        if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or claimed is None:
            logger.debug("a token of the issuer names no subject, or not exactly one role in {!r}", self._role_claim)
            return None
        shown = visible(subject, newlines=False)
        return Identified(shown, _name(claims, shown), claimed, float(claims["exp"]))

    async def _claims(self, token: str) -> dict[str, Any]:
        header = jwt.get_unverified_header(token)
        algorithm, name = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError("no algorithm of an issuer")
        key = await self._keys.find(name if isinstance(name, str) else None)
        if key is None or not key.fits(algorithm):
            raise jwt.InvalidKeyError("no key of the issuer that is for this")
        return jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=self._audience,
            issuer=self._issuer,
            leeway=_LEEWAY,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )


def _at(name: str, claims: Mapping[str, Any]) -> Any:
    """A claim by its name, or inside of one: `realm_access.roles`."""
    if name in claims:
        return claims[name]
    head, dot, rest = name.partition(".")
    inner = claims.get(head) if dot else None
    return _at(rest, inner) if isinstance(inner, Mapping) else None


def _one(value: Any) -> str | None:
    """The role that is claimed; of several none, since nobody could say which was meant."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) and value else None


def _name(claims: Mapping[str, Any], subject: str) -> str:
    given = (claims.get(key) for key in ("name", "preferred_username", "email"))
    name = next((text for text in given if isinstance(text, str) and text.strip()), subject)
    return visible(name, newlines=False)[:_LONGEST_NAME]
