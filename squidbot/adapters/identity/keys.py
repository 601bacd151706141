"""The public keys of an issuer: found by discovery, kept for a while, and asked for again when one is missing."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from loguru import logger

from squidbot.core.ports import Clock

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_EDWARDS = {"EdDSA", "Ed25519"}
"""Two names of the same."""
_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_LARGEST = 1024 * 1024
_SECONDS = 10.0
_OLD = 3_600.0
"""Seconds after which keys are asked for again, so that one that the issuer has withdrawn is not trusted for ever."""
_SOON = 10.0
"""Seconds between two questions because of a key that is not known: whoever makes up names of keys gets nothing done."""


class Untrusted(Exception):
    """The issuer said something, or is somewhere, that we do not follow; the text says what."""


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """A public key, its kind (`kty`), and the one algorithm that the issuer has published it for, if any."""

    key: Any
    kind: str
    algorithm: str | None

    def fits(self, algorithm: str) -> bool:
        """Whether a signature of this algorithm can be one of this key: the key decides, not the token."""
        if self.algorithm is not None:
            return algorithm == self.algorithm or {algorithm, self.algorithm} == _EDWARDS
        return _KINDS.get(algorithm[:2]) == self.kind


class IssuerKeys:
    """Nothing is asked before the first key is wanted."""

    def __init__(self, issuer: str, *, clock: Clock) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: dict[str | None, IssuerKey] = {}
        self._asked = float("-inf")
        self._read = float("-inf")
        self._alone = anyio.Lock()

    async def find(self, name: str | None) -> IssuerKey | None:
        """The key of this name; without a name the only one there is."""
        now = self._clock.monotonic()
        if now - self._read >= _OLD or self._known(name) is None:
            async with self._alone:
                await self._refresh(name)
        return self._known(name)

    def _known(self, name: str | None) -> IssuerKey | None:
        if name is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(name)

    async def _refresh(self, name: str | None) -> None:
        now = self._clock.monotonic()
        fresh = now - self._read < _OLD and self._known(name) is not None
        if fresh or now - self._asked < _SOON:
            return
        self._asked = now
        try:
            self._keys = await self._fetched()
            self._read = self._clock.monotonic()
        except (httpx2.HTTPError, Untrusted, ValueError, TimeoutError) as error:
            # Those that are known stay good: an issuer that is away for an hour must not lock everybody out.
            logger.warning(
                "the keys of issuer {!r} cannot be read: {}", self._issuer, str(error) or type(error).__name__
            )

    async def _fetched(self) -> dict[str | None, IssuerKey]:
        _check(self._issuer, self._issuer)
        async with httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False, trust_env=False) as client:
            with anyio.fail_after(2 * _SECONDS):
                found = await _document(client, f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
                if found.get("issuer") != self._issuer:
                    raise Untrusted("its own description names another issuer")
                place = found.get("jwks_uri")
                if not isinstance(place, str):
                    raise Untrusted("its description names no keys")
                _check(place, self._issuer)
                return _keys(await _document(client, place))


async def _document(client: httpx2.AsyncClient, url: str) -> Mapping[str, Any]:
    async with client.stream("GET", url, headers={"Accept": "application/json"}) as answer:
        if answer.status_code != 200:
            raise Untrusted(f"HTTP {answer.status_code}")
        body = b""
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > _LARGEST:
                raise Untrusted("an answer of more than a megabyte")
    found = httpx2.Response(200, content=body).json()
    if not isinstance(found, dict):
        raise Untrusted("an answer that is no object")
    return found


def _keys(document: Mapping[str, Any]) -> dict[str | None, IssuerKey]:
    """Those that are for signatures and that we can read; one bad key loses itself alone."""
    listed = document.get("keys")
    found: dict[str | None, IssuerKey] = {}
    for item in listed if isinstance(listed, list) else []:
        if not isinstance(item, dict) or item.get("use", "sig") != "sig" or item.get("kty") == "oct":
            continue
        try:
            found[item.get("kid")] = IssuerKey(jwt.PyJWK(item).key, str(item.get("kty")), item.get("alg"))
        except jwt.PyJWTError as error:
            logger.debug("a key of the issuer is left out: {}", error)
    return found


def _check(url: str, issuer: str) -> None:
    """Raise Untrusted unless it is https, or this machine's own where the settings say that the issuer is here."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise Untrusted("a url that is none") from None
    if host in _LOCAL:
        if (urlsplit(issuer).hostname or "") not in _LOCAL:
            raise Untrusted("it leads to this machine")
        if parts.scheme in ("http", "https"):
            return
    if parts.scheme != "https" or not host or "@" in parts.netloc:
        raise Untrusted("keys are read over https only")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    if not address.is_global and host != urlsplit(issuer).hostname:
        raise Untrusted("it leads to an address inside of a network")
