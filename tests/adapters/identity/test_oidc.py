"""Tokens of an issuer are believed only when everything about them is right (threat T6)."""

import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from squidbot.adapters.identity.keys import Untrusted, _check
from squidbot.adapters.identity.oidc import OIDCIdentity
from squidbot.adapters.system.clock import SystemClock
from squidbot.core.ports import Identity
from tests.fakes.door import FakeClock
from tests.fixtures.house import House, client
from tests.fixtures.issuer import AUDIENCE, Issuer

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01")]


def identity(issuer: Issuer, clock: Any = None, role_claim: str = "role") -> OIDCIdentity:
    return OIDCIdentity(issuer=issuer.url, audience=AUDIENCE, role_claim=role_claim, clock=clock or SystemClock())


@pytest.mark.parametrize("kid", ["rsa", "ec", "ed"])
async def test_a_good_token_is_whom_it_names(kid: str) -> None:
    """A team signs in with the issuer that it has, whichever keys that uses."""
    async with Issuer().serve() as issuer:
        port: Identity = identity(issuer)
        found = await port.identify(issuer.token(kid))
        assert found is not None
        assert (found.subject, found.name, found.claimed) == ("ada", "Ada", "developer")
        assert found.expires > time.time()


async def test_every_wrong_token_is_refused() -> None:
    """Each of these has been somebody's way in somewhere."""
    stranger = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    async with Issuer().serve() as issuer:
        public = issuer.keys["rsa"][1].public_key()
        pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        now = time.time()
        good = issuer.token()
        head, body, mark = good.split(".")
        wrong = {
            "no algorithm": issuer.unsigned(),
            "no signature": f"{head}.{body}.",
            "signature of another body": f"{head}.{issuer.token(sub='eve').split('.')[1]}.{mark}",
            "key of a stranger": issuer.token(key=stranger),
            "unknown key": issuer.token("nobody"),
            "no key named": issuer.token(None),
            "public key as a secret": _shared(pem, issuer),
            "published secret": jwt.encode({"sub": "ada"}, "secret" * 8, headers={"kid": "shared"}),
            "algorithm that the key is not for": issuer.token("rsa", alg="PS256"),
            "other audience": issuer.token(aud="https://other.example.com"),
            "no audience": issuer.token(aud=None),
            "other issuer": issuer.token(iss="https://evil.example.com"),
            "no issuer": issuer.token(iss=None),
            "expired": issuer.token(exp=now - 60),
            "never expires": issuer.token(exp=None),
            "not yet": issuer.token(nbf=now + 600),
            "from the future": issuer.token(iat=now + 600),
            "no subject": issuer.token(sub=None),
            "empty subject": issuer.token(sub=""),
            "endless subject": issuer.token(sub="a" * 300),
            "no role": issuer.token(role=None),
            "role that is no word": issuer.token(role={"name": "developer"}),
            "several roles": issuer.token(role=["developer", "designer"]),
            "no token": "a.b.c",
            "nothing": "",
        }
        asked = identity(issuer)
        assert await asked.identify(good) is not None
        accepted = [name for name, token in wrong.items() if await asked.identify(token) is not None]
        assert accepted == []


def _shared(pem: bytes, issuer: Issuer) -> str:
    """Signed with the public key as if it were a shared secret: by hand, since the library knows better."""
    import hashlib
    import hmac

    from tests.fixtures.issuer import _b64

    _, body, _ = issuer.token().split(".")
    head = _b64(b'{"alg":"HS256","kid":"rsa","typ":"JWT"}')
    return f"{head}.{body}.{_b64(hmac.digest(pem, f'{head}.{body}'.encode(), hashlib.sha256))}"


async def test_a_role_may_be_the_only_one_of_a_list_inside_of_a_claim() -> None:
    """So some issuers say it."""
    async with Issuer().serve() as issuer:
        token = issuer.token(role=None, realm_access={"roles": ["designer"]})
        found = await identity(issuer, role_claim="realm_access.roles").identify(token)
        assert found is not None
        assert found.claimed == "designer"


async def test_a_new_key_is_found_and_made_up_ones_do_not_wake_the_issuer() -> None:
    """Issuers change their keys; whoever invents names of keys must not make us ask for each."""
    clock = FakeClock()
    async with Issuer().serve() as issuer:
        asked = identity(issuer, clock)
        assert await asked.identify(issuer.token()) is not None
        assert len(issuer.asked) == 2
        issuer.keys["next"] = ("RS256", rsa.generate_private_key(public_exponent=65_537, key_size=2048))
        for number in range(50):
            assert await asked.identify(issuer.token(f"made-up-{number}")) is None
        assert len(issuer.asked) == 2
        clock.now += 10
        assert await asked.identify(issuer.token("next")) is not None
        assert len(issuer.asked) == 4
        del issuer.keys["rsa"]
        clock.now += 3_600
        issuer.keys["rsa"] = ("RS256", rsa.generate_private_key(public_exponent=65_537, key_size=2048))
        assert await asked.identify(issuer.token("next")) is not None
        assert len(issuer.asked) == 6


async def test_an_issuer_that_is_away_locks_nobody_out_who_was_known() -> None:
    """Its keys are still its keys."""
    clock = FakeClock()
    async with Issuer().serve() as issuer:
        asked = identity(issuer, clock)
        issuer.away = True
        assert await asked.identify(issuer.token()) is None
        issuer.away = False
        clock.now += 10
        assert await asked.identify(issuer.token()) is not None
        issuer.away = True
        clock.now += 4_000
        assert await asked.identify(issuer.token()) is not None


@pytest.mark.parametrize(
    "description",
    [
        {"issuer": "https://evil.example.com"},
        {"jwks_uri": "http://169.254.169.254/keys"},
        {"jwks_uri": "https://10.0.0.1/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://internal.example/keys"},
        {"jwks_uri": 7},
    ],
)
async def test_keys_are_not_fetched_from_wherever_somebody_says(description: dict[str, Any]) -> None:
    """A description is what the issuer says, and may be what somebody else says in its place (SSRF)."""
    async with Issuer().serve() as issuer:
        issuer.description = description
        assert await identity(issuer).identify(issuer.token()) is None
        assert issuer.asked == ["/.well-known/openid-configuration"]


async def test_a_redirect_of_the_issuer_is_not_followed() -> None:
    """It would lead to where the settings do not."""
    async with Issuer().serve() as trap, Issuer().serve() as issuer:
        issuer.moved = f"{trap.url}/.well-known/openid-configuration"
        assert await identity(issuer).identify(issuer.token()) is None
        assert trap.asked == []


@pytest.mark.parametrize(
    "url", ["http://id.example.com", "https://user:x@id.example.com", "https://[::1", "ftp://a", "http://127.0.0.1/k"]
)
def test_an_issuer_far_away_is_asked_over_https_only(url: str) -> None:
    """Keys that somebody on the way can change are nobody's."""
    with pytest.raises(Untrusted):
        _check(url, "https://id.example.com")


async def test_the_gateway_lets_in_whom_the_issuer_vouches_for(tmp_path: Path) -> None:
    """End to end: a JWT at the API and at /mcp; a wrong one is 401 with the way to the issuer."""
    async with Issuer().serve() as issuer:
        house = House(tmp_path, identity=identity(issuer), issuer=issuer.url)
        async with house.serve() as url:
            async with client(url, issuer.token()) as ada:
                assert len((await ada.get("/api/v1/tools")).json()) == 2
                assert (await ada.post("/mcp")).json() == {"role": "developer", "member": "oidc:ada", "path": "/mcp"}
            for bad in (issuer.unsigned(), issuer.token(aud="other"), issuer.token(exp=1), issuer.token(iss="x")):
                async with client(url, bad) as nobody:
                    answer = await nobody.post("/mcp")
                    assert answer.status_code == 401
                    assert "resource_metadata=" in answer.headers["www-authenticate"]
            for role in ("operator", "nobody"):
                async with client(url, issuer.token(role=role)) as nobody:
                    assert (await nobody.post("/mcp")).status_code == 401
            async with client(url, issuer.token(role="auditor")) as eve:
                assert (await eve.get("/api/v1/status")).status_code == 200
