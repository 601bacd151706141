"""Signing in at remote servers, and what becomes of the tokens."""

import json
import logging
import stat
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest

from squidbot.adapters.mcp.callback import free_port, waiting
from squidbot.adapters.mcp.channel import Bounds
from squidbot.adapters.mcp.http_outcome import failure_of
from squidbot.adapters.mcp.network import Refused, public_address
from squidbot.adapters.mcp.oauth import auth_for, forget
from squidbot.adapters.mcp.protocol import MCPError
from squidbot.adapters.mcp.stream_dispatcher import StreamDispatcher
from squidbot.adapters.mcp.tokens import token_path
from squidbot.adapters.mcp.transport import Opening
from squidbot.adapters.mcp.transports.sse import open_sse
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError
from tests.adapters.mcp.http_peer import Visit, config_for, failure, peer, wire
from tests.adapters.mcp.sign_in_server import guarded_server

pytestmark = pytest.mark.anyio

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "a test", "version": "1"},
}


class Person:
    """Somebody at a browser who agrees to everything."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def __call__(self, address: str) -> None:
        self.shown.append(address)
        async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
            page = await browser.get(address)
            assert "You are signed in" in page.text


def signed(url: str, **auth: Any) -> MCPServerConfig:
    return config_for(url, auth={"type": "oauth", **auth})


def kept(config: MCPServerConfig, state: Path) -> dict[str, Any]:
    found = json.loads(token_path(state, config.digest).read_text())
    assert isinstance(found, dict)
    return found


async def enter(config: MCPServerConfig, opening: Opening) -> dict[str, Any]:
    async with wire(config, opening=opening) as dispatcher:
        return await dispatcher.send_raw_request("initialize", HELLO, {"timeout": 20})


async def refused(config: MCPServerConfig, opening: Opening) -> str:
    async with wire(config, opening=opening) as dispatcher:
        error = await failure(dispatcher, timeout=20)
    told = failure_of(error.error.data)
    assert told is not None
    assert told.status == 401
    return error.error.message


@pytest.mark.requirement("B-13")
async def test_a_person_signs_in_once_and_nobody_is_asked_again(tmp_path: Path) -> None:
    """Registration, PKCE and the token are one visit to a browser; the next start needs none."""
    person = Person()
    async with guarded_server() as (url, authority):
        config = signed(url)
        assert (await enter(config, Opening(Bounds(), tmp_path, person)))["serverInfo"]["name"] == "guarded"
        assert (await enter(config, Opening(Bounds(), tmp_path)))["serverInfo"]["name"] == "guarded"
        assert authority.grants == ["authorization_code"]
    assert len(person.shown) == 1
    assert parse_qs(urlsplit(person.shown[0]).query)["code_challenge_method"] == ["S256"]


@pytest.mark.requirement("B-13")
async def test_tokens_are_for_their_owners_eyes_alone_and_can_be_forgotten(tmp_path: Path) -> None:
    """They are as good as a password."""
    async with guarded_server() as (url, _):
        config = signed(url)
        await enter(config, Opening(Bounds(), tmp_path, Person()))
        path = token_path(tmp_path, config.digest)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert [file.name for file in path.parent.iterdir()] == [path.name]
        assert forget(config, tmp_path)
        assert not forget(config, tmp_path)
        assert "servers login there" in await refused(config, Opening(Bounds(), tmp_path))


@pytest.mark.requirement("B-13")
@pytest.mark.parametrize("how", ["it ended", "the server forgot it"])
async def test_a_token_is_renewed_without_a_person_also_after_a_restart(tmp_path: Path, how: str) -> None:
    """The SDK would ask a person: it forgets when a token ends and where it came from."""
    async with guarded_server() as (url, authority):
        config = signed(url)
        await enter(config, Opening(Bounds(), tmp_path, Person()))
        before = kept(config, tmp_path)
        authority.access.clear()
        if how == "it ended":
            token_path(tmp_path, config.digest).write_text(json.dumps({**before, "expires_at": time.time() - 1}))
        await enter(config, Opening(Bounds(), tmp_path))
        after = kept(config, tmp_path)
        assert authority.grants == ["authorization_code", "refresh_token"]
        assert after["tokens"]["access_token"] != before["tokens"]["access_token"]
        assert after["expires_at"] > time.time()


@pytest.mark.requirement("B-13")
async def test_without_a_person_nobody_is_asked_and_nothing_is_registered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A gateway in the background must say what to do, once, and leave no traces at the server."""
    async with guarded_server() as (url, authority):
        with caplog.at_level(logging.WARNING):
            message = await refused(signed(url), Opening(Bounds(), tmp_path))
        assert "wants a sign-in" in message
        assert "squidbot servers login there" in message
        assert authority.clients == {}
    assert caplog.records == []


@pytest.mark.requirement("B-13")
async def test_a_refused_sign_in_is_told_and_leaves_the_port_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A person may say no; a stranger on this machine must not be able to say it for them."""
    port = free_port()
    pages: list[str] = []

    async def no(address: str) -> None:
        state = parse_qs(urlsplit(address).query)["state"][0]
        back = f"http://127.0.0.1:{port}/callback"
        async with httpx2.AsyncClient(trust_env=False) as browser:
            for query in ("code=evil&state=guess", "code=evil", f"error=access_denied&state={state}"):
                pages.append((await browser.get(f"{back}?{query}")).text)
            pages.append((await browser.post(back)).text)

    async with guarded_server() as (url, _):
        with caplog.at_level(logging.WARNING):
            message = await refused(signed(url, redirect_port=port), Opening(Bounds(), tmp_path, no))
    assert "the sign-in was refused: 'access_denied'" in message
    assert ["not the answer" in page for page in pages] == [True, True, False, True]
    assert caplog.records == []
    async with waiting(port, "free again"):
        pass


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    """The browser could not come back."""
    port = free_port()
    async with guarded_server() as (url, _), waiting(port, "somebody else's"):
        message = await refused(signed(url, redirect_port=port), Opening(Bounds(), tmp_path, Person()))
    assert f"port {port}" in message
    assert "redirect_port" in message


async def test_a_client_that_the_settings_name_is_not_registered(tmp_path: Path) -> None:
    """Some servers know their clients beforehand."""
    port = free_port()
    async with guarded_server() as (url, authority):
        other = signed(url, redirect_port=port)
        await enter(other, Opening(Bounds(), tmp_path, Person()))
        (known,) = authority.clients.values()
        config = signed(
            url, redirect_port=port, client_id=known.client_id, client_secret=known.client_secret, scopes=["tools"],
            token_endpoint_auth_method=known.token_endpoint_auth_method, issuer=url.removesuffix("/mcp"),
        )  # fmt: skip
        await enter(config, Opening(Bounds(), tmp_path, Person()))
        assert list(authority.clients) == [known.client_id]


async def test_an_issuer_that_the_server_does_not_name_is_refused(tmp_path: Path) -> None:
    """The settings say who may ask a person for a password."""
    person = Person()
    async with guarded_server() as (url, _):
        message = await refused(signed(url, issuer="https://id.example"), Opening(Bounds(), tmp_path, person))
    assert "other sign-in servers" in message
    assert person.shown == []


async def test_a_damaged_token_file_is_as_good_as_none(tmp_path: Path) -> None:
    """A crash, a full disk, a curious editor."""
    async with guarded_server() as (url, _):
        config = signed(url)
        path = token_path(tmp_path, config.digest)
        path.parent.mkdir(parents=True)
        for damage in ("{", "[]", '{"tokens": 1, "expires_at": "soon"}'):
            path.write_text(damage)
            assert "wants a sign-in" in await refused(config, Opening(Bounds(), tmp_path))


async def test_without_a_state_folder_tokens_live_as_long_as_the_connection() -> None:
    """Nothing is written where nobody said that it may be."""
    async with guarded_server() as (url, _):
        await enter(signed(url), Opening(Bounds(), None, Person()))


def test_without_auth_in_the_settings_there_is_none() -> None:
    """A token in the headers needs no flow."""
    assert auth_for(config_for("http://127.0.0.1:1/"), Opening(Bounds())) is None


# A program by itself, and servers that lie


class Shop:
    """A server and an authorization server in one, on raw HTTP, with metadata to be bent."""

    def __init__(self, **metadata: Any) -> None:
        self.metadata = metadata
        self.tokens: list[dict[str, list[str]]] = []
        self.refuse_token = False
        self.answer: Callable[[Visit], Awaitable[None]] | None = None

    async def __call__(self, visit: Visit) -> None:
        origin = f"http://{visit.asked.headers['host']}"
        match visit.asked.path:
            case "/token" if self.refuse_token:
                await self._json(visit, {"error": "invalid_client", "echo": "hunter2"}, status=400)
            case "/token":
                self.tokens.append(parse_qs(visit.asked.body.decode()))
                await self._json(visit, {"access_token": "good", "token_type": "Bearer", "expires_in": 60})
            case path if path.startswith("/.well-known/oauth-protected-resource"):
                servers = self.metadata.get("servers", [origin])
                await self._json(visit, {"resource": f"{origin}/mcp", "authorization_servers": servers})
            case path if path.startswith("/.well-known/"):
                endpoints = {"authorization_endpoint": f"{origin}/authorize", "token_endpoint": f"{origin}/token"}
                endpoints |= self.metadata.get("endpoints", {})
                await self._json(visit, {"issuer": origin, "response_types_supported": ["code"], **endpoints})
            case _ if visit.asked.headers.get("authorization") != "Bearer good":
                where = self.metadata.get("challenge", f"{origin}/.well-known/oauth-protected-resource/mcp")
                await visit.reply(401, WWW_Authenticate=f'Bearer resource_metadata="{where}"')
            case _:
                await (self.answer(visit) if self.answer else visit.result({"in": True}))

    async def _json(self, visit: Visit, body: Any, *, status: int = 200) -> None:
        await visit.reply(status, json.dumps(body).encode(), Content_Type="application/json")


def program(url: str, **auth: Any) -> MCPServerConfig:
    given = {"type": "client_credentials", "client_id": "me", "client_secret": "hunter2", **auth}
    return config_for(url, auth=given)


@pytest.mark.requirement("B-13")
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_program_signs_in_by_itself(tmp_path: Path, method: str) -> None:
    """No person, no browser; the scopes of the settings, and the token is used again."""
    shop = Shop()
    async with peer(shop) as there:
        config = program(there.url(), token_endpoint_auth_method=method, scopes=["a", "b"])
        for _ in range(2):
            async with wire(config, opening=Opening(Bounds(), tmp_path)) as dispatcher:
                assert await dispatcher.send_raw_request("ping", {}, {"timeout": 5}) == {"in": True}
    (token,) = shop.tokens
    assert token["grant_type"] == ["client_credentials"]
    assert token["scope"] == ["a b"]
    assert ("client_secret" in token) == (method == "client_secret_post")


@pytest.mark.requirement("B-13", "B-09")
async def test_signed_calls_run_side_by_side(tmp_path: Path) -> None:
    """The SDK's provider lets one request through at a time."""
    shop = Shop()
    waiting_calls = 0
    everybody = anyio.Event()

    async def together(visit: Visit) -> None:
        nonlocal waiting_calls
        if visit.asked.message["method"] == "tools/call":
            waiting_calls += 1
            if waiting_calls == 8:
                everybody.set()
            await everybody.wait()
        await visit.result({})

    async def call(dispatcher: StreamDispatcher) -> None:
        await dispatcher.send_raw_request("tools/call", {}, {"timeout": 10})

    shop.answer = together
    async with peer(shop) as there, wire(program(there.url())) as dispatcher:
        await dispatcher.send_raw_request("ping", {}, {"timeout": 5})
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(call, dispatcher)


async def test_a_refusal_without_a_challenge_is_not_tried_again(tmp_path: Path) -> None:
    """A 403 may come from a tool that has already done its work."""
    shop = Shop()
    calls = 0

    async def forbid(visit: Visit) -> None:
        nonlocal calls
        if visit.asked.message["method"] != "tools/call":
            await visit.result({})
            return
        calls += 1
        await visit.reply(403)

    shop.answer = forbid
    async with peer(shop) as there, wire(program(there.url())) as dispatcher:
        await dispatcher.send_raw_request("ping", {}, {"timeout": 5})
        assert "HTTP 403" in (await failure(dispatcher)).error.message
    assert calls == 1


async def test_a_refused_secret_is_one_calls_error_and_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Some servers repeat in their error what they were sent."""
    shop = Shop()
    shop.refuse_token = True
    with caplog.at_level(logging.WARNING):
        async with peer(shop) as there:
            message = await refused(program(there.url()), Opening(Bounds()))
    assert "invalid_client" in message
    assert "hunter2" not in message
    assert caplog.records == []


async def test_over_sse_a_missing_sign_in_is_an_error_on_opening() -> None:
    """The same words as over streamable HTTP."""
    async with peer(Shop()) as there:
        config = config_for(there.url(), transport="sse", auth={"type": "oauth"})
        with pytest.raises(MCPConnectionError, match="wants a sign-in") as caught:
            async with open_sse(config, Opening(Bounds())):
                pass
    assert caught.value.hint == "Run `squidbot servers login there`."
    assert caught.value.permanent


@pytest.mark.parametrize("bent", ["challenge", "servers", "token_endpoint", "issuer"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]"])
async def test_metadata_never_leads_to_what_only_this_machine_can_reach(bent: str, host: str, tmp_path: Path) -> None:
    """A server could make us ask our own network, and send it the secret."""

    async def nothing(visit: Visit) -> None:
        await visit.reply(404)

    async with peer(nothing) as trap:
        for scheme in ("http", "https"):
            target = f"{scheme}://{host}:{trap.port}"
            bends: dict[str, dict[str, Any]] = {
                "challenge": {"challenge": f"{target}/x"},
                "servers": {"servers": [target]},
                "token_endpoint": {"endpoints": {"token_endpoint": f"{target}/token"}},
                "issuer": {"servers": [target], "endpoints": {"issuer": target}},
            }
            shop = Shop(**bends[bent])
            async with peer(shop) as there, wire(program(there.url())) as dispatcher:
                with suppress(MCPError):  # where only the challenge is bent, the server itself is asked next
                    await dispatcher.send_raw_request("ping", {}, {"timeout": 8})
                    assert bent == "challenge"
        assert trap.asked == []


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.1.2.3",
        "192.168.0.1",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0.0.0.0",
        "::1",
        "::ffff:169.254.169.254",
        "fd00:ec2::254",
        "fe80::1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "224.0.0.1",
        "192.0.0.192",
        "168.63.129.16",
        "::ffff:192.0.0.192",
        "::ffff:168.63.129.16",
        "2002:c000:c0::1",
        "64:ff9b::c000:c0",
        "64:ff9b:1::a9fe:a9fe",
        "::169.254.169.254",
        "fec0::1",
        "2002:a9fe:a9fe::1",
        "2002:a00:1::",
        "2001:0:a9fe:a9fe:8000:63bf:f7f7:f7f7",  # Teredo, its server
        "2001:0:808:808:8000:63bf:5601:5601",  # Teredo, its client
        "2606:4700::5efe:a9fe:a9fe",  # ISATAP
        "2606:4700::200:5efe:a9fe:a9fe",
        "2606:4700::300:5efe:10.0.0.1",
        "2002:808:808::5efe:127.0.0.1",
        "fe80::5efe:808:808",
        "fd00::200:5efe:808:808",
        "::ffff:0:169.254.169.254",
    ],
)
async def test_addresses_that_are_not_public_are_refused_before_a_connection(host: str) -> None:
    """Judged by what they mean, not by how they are spelt."""
    with pytest.raises(Refused, match="not a public address"):
        await public_address(host, 443)


@pytest.mark.parametrize(
    "host", ["93.184.216.34", "2606:4700::1111", "2002:808:808::1", "2606:4700::5efe:808:808", "64:ff9b::808:808"]
)
async def test_public_addresses_pass(host: str) -> None:
    """A sign-in server elsewhere is the usual case."""
    assert await public_address(host, 443) == host


async def test_a_name_that_does_not_exist_is_named() -> None:
    """It is no refusal but a mistake."""
    with pytest.raises(httpx2.ConnectError, match="cannot be found"):
        await public_address("nowhere.invalid", 443)
