"""A token becomes somebody, or 401 says how to get one; nobody else comes in by any path."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.members import Principal
from squidbot.core.domain.roles import MCPToolMapper
from squidbot.gateway import auth
from squidbot.gateway.auth import Auth, Present
from squidbot.gateway.hosts import HostRules
from tests.fixtures.house import ROLES, ROOT, House, client
from tests.fixtures.trail import all_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01")]

GUARDED = ("/mcp", "/mcp/git", "/mcp/", "/api/v1/status", "/api/v1/tools", "/api/v1/nowhere", "/metrics")


@pytest.mark.parametrize("path", GUARDED)
async def test_without_a_token_there_is_only_the_way_to_get_one(tmp_path: Path, path: str) -> None:
    """Unknown and guarded look the same, and a client finds out by itself what is wanted (RFC 9728)."""
    house = House(tmp_path, issuer="https://id.example.com")
    async with house.serve() as url, client(url) as nobody:
        answer = await nobody.get(path)
        assert answer.status_code == 401
        assert set(answer.json()["error"]) == {"code", "message", "hint"}
        found = re.search(r'^Bearer .*resource_metadata="([^"]+)"', answer.headers["www-authenticate"])
        assert found
        document = (await nobody.get(found[1])).json()
        assert document["resource"] == f"{url}{'/mcp/git' if path == '/mcp/git' else '/mcp'}"
        assert document["authorization_servers"] == ["https://id.example.com"]
        assert document["bearer_methods_supported"] == ["header"]
        (record,) = await all_of(house.store)
        assert (record.kind, record.outcome, record.error_message) == ("sign_in", "refused", "no token was sent")
        assert record.origin == ("mcp" if path.startswith("/mcp") else "api")
    assert house.seen == []


async def test_who_only_looks_whether_we_live_is_not_recorded(tmp_path: Path) -> None:
    """Health checks, and a browser that is sent to the page to sign in, come all day."""
    house = House(tmp_path)
    async with house.serve() as url, client(url) as nobody:
        for path in ("/", "/healthz", "/readyz", "/api/v1/openapi.json", "/.well-known/oauth-protected-resource"):
            assert (await nobody.get(path)).status_code == 200
        asks = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
        assert (await nobody.options("/mcp", headers=asks)).status_code == 204
        assert await all_of(house.store) == []


async def test_metadata_tells_of_no_server_and_of_nothing_else(tmp_path: Path) -> None:
    """Which servers there are is nobody's business who has no token."""
    house = House(tmp_path)
    async with house.serve() as url, client(url) as nobody:
        base = "/.well-known/oauth-protected-resource"
        assert (await nobody.get(base)).json()["resource"] == f"{url}/mcp"
        assert "authorization_servers" not in (await nobody.get(base)).json()
        known, unknown = [await nobody.get(f"{base}/mcp/{name}") for name in ("git", "nothing")]
        assert (known.status_code, unknown.status_code) == (200, 200)
        for path in ("/api", "/mcp/a/b", "/mcp/%22%0d%0aX", "/x"):
            assert (await nobody.get(base + path)).status_code == 404
        assert (await nobody.get("/.well-known/other")).status_code == 404


@pytest.mark.parametrize(
    "given",
    [
        "Bearer",
        "Basic YTpi",
        "Bearer sqb_0123456789ab_" + "0" * 64,
        "Bearer eyJhbGciOiJub25lIn0.e30.",
        "Bearer " + "x" * 20_000,
        "TOKEN",
        "Bearer TOKEN extra",
        "Bearer\tTOKEN",
    ],
)
async def test_what_is_no_good_token_is_nobodys(tmp_path: Path, given: str) -> None:
    """Whatever is sent is compared, and nothing in it is believed."""
    house = House(tmp_path)
    async with house.serve() as url, client(url) as somebody:
        token = await house.token("developer")
        answer = await somebody.get("/mcp", headers={"Authorization": given.replace("TOKEN", token)})
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        (record,) = await all_of(house.store, RecordFilter(kind="sign_in"))
        assert (record.outcome, record.origin) == ("refused", "mcp")
    assert house.seen == []


async def test_two_tokens_are_none(tmp_path: Path) -> None:
    """Two readers must not take one request for two different people's."""
    house = House(tmp_path)
    async with house.serve() as url, client(url) as somebody:
        tokens = [await house.token(role) for role in ("developer", "admin")]
        headers = [("Authorization", f"Bearer {token}") for token in tokens]
        assert (await somebody.get("/mcp", headers=headers)).status_code == 401


@pytest.mark.parametrize("query", ["access_token={}", "token={}", "api_key={}", "x={}", "a=1&TOKEN={}", "token="])
@pytest.mark.parametrize("path", ["/mcp", "/api/v1/tools", "/metrics"])
async def test_a_token_in_the_query_opens_nothing(tmp_path: Path, path: str, query: str) -> None:
    """Queries are kept in logs, histories and by proxies: even a good token beside it does not help."""
    house = House(tmp_path)
    async with house.serve() as url:
        token = await house.token("admin")
        async with client(url, token) as admin, client(url) as nobody:
            for somebody in (admin, nobody):
                answer = await somebody.get(f"{path}?{query.format(token)}")
                assert answer.status_code == 401
                assert token not in answer.text + str(answer.headers)
        records = await all_of(house.store, RecordFilter(kind="sign_in"))
        assert token.rsplit("_", 1)[1] not in repr(records)


async def test_a_token_is_whom_it_was_made_for_and_a_right_has_no_role(tmp_path: Path) -> None:
    """The endpoint is told who asks; an admin's token is no way to any tool."""
    house = House(tmp_path)
    async with house.serve() as url:
        for wanted, role in (("developer", "developer"), ("admin", None), ("auditor", None)):
            async with client(url, await house.token(wanted)) as somebody:
                assert (await somebody.post("/mcp/git", json={})).json()["role"] == role
        assert [scope["path"] for scope, _ in house.seen] == ["/mcp/git"] * 3


async def test_a_token_made_elsewhere_is_good_at_once_and_a_revoked_one_is_gone(tmp_path: Path) -> None:
    """`squidbot tokens create` runs in another process than the gateway."""
    house, other = House(tmp_path), House(tmp_path)
    async with house.serve() as url, other.open():
        made = await other.admission.create(ROOT, "developer", name="Ada")
        async with client(url, made.token) as ada:
            assert (await ada.get("/mcp")).status_code == 200
            await house.admission.revoke(ROOT, made.record.id)
            assert (await ada.get("/mcp")).status_code == 401


async def test_a_role_that_is_gone_lets_nobody_in(tmp_path: Path) -> None:
    """A lookup that finds nothing must find nobody, not everything."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("developer")) as ada:
        assert len((await ada.get("/api/v1/tools")).json()) == 2
        house.permissions.replace(MCPToolMapper({"designer": ROLES["designer"]}))
        for path in ("/api/v1/tools", "/mcp"):
            assert (await ada.get(path)).status_code == 401


async def test_a_stream_ends_when_its_token_is_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is sent away must not go on listening because they came in time."""
    monkeypatch.setattr(auth, "_PATIENCE", 0.05)

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        async def words() -> AsyncIterator[bytes]:
            while True:
                yield b"word "
                await anyio.sleep(0.01)

        await StreamingResponse(words())(scope, receive, send)

    house = House(tmp_path, mcp=endless)
    async with house.serve() as url:
        made = await house.admission.create(ROOT, "developer", name="Ada")
        with anyio.fail_after(20):
            async with client(url, made.token) as ada, ada.stream("GET", "/mcp") as answer:
                heard = answer.aiter_raw()
                assert (await anext(heard)).startswith(b"word")
                await house.admission.revoke(ROOT, made.record.id)
                with pytest.raises(Exception, match=r"."):
                    async for _ in heard:
                        pass
    assert house.faults == []


async def test_a_flood_of_bad_tokens_leaves_few_records(tmp_path: Path) -> None:
    """Whoever has no token must not be able to fill the disk."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, "wrong") as nobody:
        for _ in range(60):
            assert (await nobody.get("/mcp")).status_code == 401
        assert len(await all_of(house.store, RecordFilter(kind="sign_in"))) <= 22


async def test_the_callers_token_appears_nowhere(tmp_path: Path) -> None:
    """Not in a record, and not in a file; the database has only its digest. A tool gets its arguments and nothing beside."""
    house = House(tmp_path)
    async with house.serve() as url:
        token = await house.token("developer")
        secret = token.rsplit("_", 1)[1]
        async with client(url, token) as ada:
            asked = {"arguments": {"branch": "feature/x", "note": f"my token is {token}"}}
            answer = await ada.post("/api/v1/tools/mcp_git_push/call", json=asked)
            assert answer.status_code == 200
        records = repr(await all_of(house.store))
        assert secret not in records
        assert "[redacted:" in records
        assert [dict(call) for call in house.push.calls] == [asked["arguments"]]
    assert all(secret.encode() not in content for content in _files(tmp_path))


def _files(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.rglob("*") if file.is_file()]


async def test_a_cookie_opens_the_api_only_for_pages_of_ours(tmp_path: Path) -> None:
    """A page on another port of this machine is the same site to a browser: only the same origin may change things."""
    who = Principal("m_root", "Root", "t", right="admin")

    async def session(request: Request) -> Principal | None:
        return who if request.cookies.get("squidbot_session") == "sealed" else None

    async def never(scope: Scope, receive: Receive, send: Send) -> None: ...

    house = House(tmp_path)
    door = Auth(never, house.admission, "api", HostRules(), Present(house.admission), session)
    cookie = (b"cookie", b"squidbot_session=sealed")
    host = (b"host", b"localhost:8765")

    async def found(method: str, *headers: tuple[bytes, bytes]) -> object:
        scope = {"type": "http", "method": method, "path": "/api/v1/tokens", "headers": [host, *headers]}
        answer = await door._who(scope)
        return answer if isinstance(answer, Principal) else answer.status_code

    async with house.open():
        assert await found("GET", cookie) == who
        assert await found("GET") == 401
        assert await found("POST", cookie) == 401
        assert await found("POST", cookie, (b"origin", b"http://localhost:3000")) == 401
        assert await found("POST", cookie, (b"origin", b"https://localhost:8765")) == who
        assert await found("POST", cookie, (b"origin", b"http://localhost:8765")) == who


async def test_metrics_are_for_who_may_look(tmp_path: Path) -> None:
    """They name roles, servers and tools."""
    house = House(tmp_path)
    async with house.serve() as url:
        for wanted, status in (("developer", 403), ("auditor", 200), ("admin", 200)):
            async with client(url, await house.token(wanted)) as somebody:
                answer = await somebody.get("/metrics")
                assert answer.status_code == status
        assert answer.text.startswith("# HELP")
