"""Whom the gateway answers at all: names, pages, sizes, numbers; and what every answer carries."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from squidbot.gateway import guard
from squidbot.gateway.bodies import LARGEST
from squidbot.gateway.hosts import HostRules, split_host
from tests.fixtures.house import House, client
from tests.fixtures.running import until
from tests.fixtures.trail import all_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01")]

OPEN = HostRules("0.0.0.0", ("squid.example.com", "*.corp.example"), ("https://tools.example.com",))
BOUND = HostRules("192.0.2.7")
HERE = HostRules()

HOSTS = {
    "127.0.0.1:8765": {"here", "bound", "open"},
    "localhost": {"here", "bound", "open"},
    "LOCALHOST:1": {"here", "bound", "open"},
    "[::1]:8765": {"here", "bound", "open"},
    "192.0.2.7:8765": {"bound"},
    "squid.example.com": {"open"},
    "a.corp.example:443": {"open"},
    "evil.example": set(),
    "127.0.0.1.evil.example": set(),
    "localhost.evil.example": set(),
    "evil.example:8765@127.0.0.1": set(),
    "127.0.0.1, evil.example": set(),
    "": set(),
    "localhost:port": set(),
}
ORIGINS = {
    None: {"here", "bound", "open"},
    "http://localhost:3000": {"here", "bound", "open"},
    "https://tools.example.com": {"open"},
    "https://tools.example.com.evil.example": set(),
    "http://evil.example": set(),
    "null": set(),
    "file://": set(),
    "http://localhost:3000.evil.example": set(),
    "http://localhost@evil.example": set(),
}
BINDS = {"here": HERE, "bound": BOUND, "open": OPEN}


@pytest.mark.parametrize("bind", BINDS)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("origin", ORIGINS)
async def test_only_allowed_pairs_of_host_and_origin_pass(bind: str, host: str, origin: str | None) -> None:
    """A page of any site can make a browser ask this machine; it must not be answered (DNS rebinding, CSRF)."""
    seen: list[object] = []

    async def inside(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    noted: list[str] = []
    app = guard.Guard(inside, BINDS[bind], on_fault=seen.append, note=_noting(noted))
    headers = [(b"host", host.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    for path in ("/mcp", "/api/v1/status", "/"):
        sent = await _asked(app, path, headers)
        expected = 421 if bind not in HOSTS[host] else 403 if bind not in ORIGINS[origin] else 200
        assert sent[0]["status"] == expected, path
        shown = dict(sent[0]["headers"])
        assert (b"access-control-allow-origin" in shown) <= (expected == 200 and origin is not None)
        assert b"access-control-allow-credentials" not in shown
    assert len(seen) == (3 if expected == 200 else 0)
    assert noted == {200: [], 403: ["origin"] * 3, 421: ["host"] * 3}[expected]


def _noting(noted: list[str]) -> guard.Note:
    async def note(which: str, scope: Scope, said: str) -> None:
        noted.append(which)

    return note


async def _asked(app: ASGIApp, path: str, headers: list[tuple[bytes, bytes]], method: str = "GET") -> list[Message]:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app({"type": "http", "method": method, "path": path, "headers": headers}, receive, send)
    return sent


async def test_who_comes_by_a_foreign_name_or_page_is_on_record(tmp_path: Path) -> None:
    """T5: whoever looks at the trail sees that somebody tries; what they sent along stays out of it."""
    house = House(tmp_path)
    async with house.serve() as url, client(url) as stranger:
        token = f"sqb_0123456789ab_{'0' * 64}"
        asks = {"Authorization": f"Bearer {token}", "Cookie": f"session={token}"}
        foreign = {"host": "evil.example", "origin": f"http://ada:{token}@evil.example"}
        for path, header in (("/mcp/x?token=", "host"), ("/api/v1/", "origin"), ("/mcp/", "origin"), ("/", "host")):
            answer = await stranger.post(path + token, headers={**asks, header: foreign[header]})
            assert answer.status_code == {"host": 421, "origin": 403}[header]
        assert (await stranger.get("/mcp", headers={"Host": "x" * 60_000})).status_code == 421
        asked = {"Origin": foreign["origin"], "Access-Control-Request-Method": "POST"}
        assert (await stranger.options("/mcp", headers=asked)).status_code == 403
        records = await all_of(house.store)
    assert [(one.kind, one.outcome, one.origin, one.role) for one in records] == [
        ("request", "refused", origin, "") for origin in ("mcp", "api", "mcp", "dashboard", "mcp", "mcp")
    ]
    assert [json.loads(one.arguments) for one in records] == [
        {which: name, "address": "127.0.0.1"}
        for which, name in (
            ("host", "evil.example"),
            ("origin", "evil.example"),
            ("origin", "evil.example"),
            ("host", "evil.example"),
            ("host", "(60000 characters)"),
            ("origin", "evil.example"),
        )
    ]
    assert records[0].error_message == "this gateway does not answer by that name"
    assert records[1].error_message == "pages of that origin may not speak to this gateway"
    assert token not in repr(records)


async def test_a_flood_of_strangers_fills_no_disk_and_hides_no_other(tmp_path: Path) -> None:
    """They need no token to come; a page that tries to get in is seen all the same."""
    house = House(tmp_path)
    async with house.serve() as url, client(url) as stranger:
        for _ in range(200):
            assert (await stranger.get("/mcp", headers={"Host": "lb.example"})).status_code == 421
        assert (await stranger.get("/mcp", headers={"Origin": "http://evil.example"})).status_code == 403
        assert (await stranger.get("/mcp")).status_code == 401
        records = await all_of(house.store)
    kept = [json.loads(record.arguments) for record in records]
    assert 20 <= sum("host" in one for one in kept) <= 25
    assert [one["origin"] for one in kept if "origin" in one] == ["http://evil.example"]
    assert records[-1].kind == "sign_in"


async def test_who_cannot_be_recorded_is_refused_all_the_same(tmp_path: Path) -> None:
    """The wall does not lean on the record."""
    house = House(tmp_path)
    async with house.serve() as url, client(url) as stranger:
        await house.store.__aexit__(None, None, None)
        assert (await stranger.get("/mcp", headers={"Host": "evil.example"})).status_code == 421
        assert (await stranger.get("/mcp", headers={"Origin": "http://evil.example"})).status_code == 403


async def test_two_hosts_or_two_origins_are_none() -> None:
    """What two readers could understand in two ways is refused."""
    noted: list[str] = []
    app = guard.Guard(_never, HERE, on_fault=lambda fault: None, note=_noting(noted))
    twice = [(b"host", b"localhost"), (b"host", b"evil.example")]
    assert (await _asked(app, "/mcp", twice))[0]["status"] == 421
    assert (await _asked(app, "/mcp", []))[0]["status"] == 421
    pages = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"origin", b"http://evil.example")]
    assert (await _asked(app, "/mcp", pages))[0]["status"] == 403
    assert noted == ["host", "host", "origin"]


async def _never(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("nobody comes this far")


@pytest.mark.parametrize("text", ["a/b", "a b", "a\\b", "é", "[::1", "a:99999999", "user@host", "#", "?"])
def test_what_is_no_host_has_no_name(text: str) -> None:
    """A name that is read in two ways is no name."""
    assert split_host(text) is None


async def test_probes_answer_by_any_name_and_tell_nothing(tmp_path: Path) -> None:
    """A load balancer knows a gateway by its address only."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, Host="10.1.2.3:8765") as probe:
        assert (await probe.get("/healthz")).json() == {"status": "ok"}
        assert (await probe.get("/readyz")).status_code == 200
        house.ready = False
        late = await probe.get("/readyz")
        assert (late.status_code, late.json()) == (503, {"status": "starting"})
        assert (await probe.post("/healthz")).status_code == 405
        assert (await probe.get("/api/v1/status")).status_code == 421


async def test_every_answer_carries_the_headers_that_keep_it_to_itself(tmp_path: Path) -> None:
    """A forgotten header on one path is the one that is found."""
    house = House(tmp_path)
    async with house.serve() as url, client(url) as nobody:
        for path in ("/", "/mcp", "/api/v1/status", "/healthz", "/metrics", "/api/v1/openapi.json", "/nowhere"):
            headers = (await nobody.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff", path
            assert headers["x-frame-options"] == "DENY", path
            assert "frame-ancestors 'none'" in headers["content-security-policy"], path
            assert headers["cache-control"] == "no-store", path


async def test_a_page_of_an_allowed_origin_may_use_a_token_but_no_cookie(tmp_path: Path) -> None:
    """Whoever lists an origin wants its pages to work, not to act as whoever is signed in."""
    house = House(tmp_path, rules=HostRules(allowed_origins=("https://tools.example.com",)))
    async with house.serve() as url, client(url, Origin="https://tools.example.com") as page:
        asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        before = await page.options("/mcp", headers=asks)
        assert before.status_code == 204
        assert before.headers["access-control-allow-origin"] == "https://tools.example.com"
        token = await house.token("developer")
        answer = await page.post("/mcp", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200
        assert "access-control-allow-credentials" not in answer.headers
        assert "access-control-allow-origin" not in (await page.get("/")).headers


async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """Five megabytes of somebody's arguments must not become five hundred of our memory."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("developer")) as developer:
        path, large = (
            "/api/v1/tools/mcp_git_log/call",
            json.dumps({"arguments": {"a": "x" * (5 * 1024 * 1024)}}).encode(),
        )

        async def pieces() -> AsyncIterator[bytes]:
            for begin in range(0, len(large), 65_536):
                yield large[begin : begin + 65_536]

        for content in (large, pieces()):
            answer = await developer.post(path, content=content, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
        assert house.seen == []
        fits = json.dumps({"arguments": {"a": "x" * (LARGEST - 200)}}).encode()
        assert (
            await developer.post(path, content=fits, headers={"Content-Type": "application/json"})
        ).status_code == 200


async def test_who_comes_when_all_places_are_taken_is_told_to_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand open streams must leave the others alive, and the thousand and first refused."""
    monkeypatch.setattr(guard, "MOST_AT_ONCE", 5)
    waiting: list[Scope] = []
    go = anyio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        waiting.append(scope)
        await go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    house = House(tmp_path, mcp=slow)
    async with house.serve() as url, client(url, await house.token("developer")) as developer:
        answers: list[int] = []

        async def ask() -> None:
            answers.append((await developer.get("/mcp")).status_code)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
            await until(lambda: len(waiting) == 5, what="five requests under way")
            late = await developer.get("/mcp")
            assert (late.status_code, late.headers["retry-after"]) == (503, "1")
            assert (await developer.get("/healthz")).status_code == 200
            go.set()
        assert answers == [200] * 5
        assert (await developer.get("/mcp")).status_code == 200


async def test_a_fault_of_ours_tells_no_stranger_where_it_is(tmp_path: Path) -> None:
    """Traces, paths and settings are for the log."""

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("/home/ada/secret.py: password=hunter2")

    house = House(tmp_path, mcp=broken, dashboard=broken)
    async with house.serve() as url, client(url, await house.token("developer")) as developer:
        for path in ("/mcp", "/"):
            answer = await developer.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
            assert "ada" not in answer.text
            assert "hunter2" not in answer.text
    assert [type(fault) for fault in house.faults] == [RuntimeError, RuntimeError]
