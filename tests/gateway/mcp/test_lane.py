"""The short way of requests whose head is known: as guarded as the long one, and never taken by what does not belong on it."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import pytest

from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.roles import MCPToolMapper
from squidbot.core.services import admission
from squidbot.gateway import wire
from squidbot.gateway.draining import Draining
from squidbot.gateway.mcp.endpoint import MCPEndpoint
from squidbot.gateway.mcp.lane import Lane
from tests.fixtures.house import ROLES, ROOT, House
from tests.fixtures.running import until
from tests.fixtures.trail import all_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01")]

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@dataclass
class Place:
    """The whole gateway around a door, a client in a session, and how often its requests took the short way."""

    house: House
    client: httpx2.AsyncClient
    token: str
    url: str
    headers: dict[str, str]
    draining: Draining
    short: list[bytes] = field(default_factory=list)

    async def call(self, text: str = "x", *, name: Any = 1, more: dict[str, str] | None = None) -> httpx2.Response:
        params = {"name": "mcp_git_push", "arguments": {"branch": f"feature/{text}"}}
        message = {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}
        return await self.client.post("/mcp", json=message, headers={**self.headers, **(more or {})})


@pytest.fixture
async def place(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    short: list[bytes] = []
    serve = Lane.serve

    async def noted(self: Lane, body: bytes, post: Any) -> bool:
        taken = await serve(self, body, post)
        if taken:
            short.append(body)
        return taken

    monkeypatch.setattr(Lane, "serve", noted)
    async with AsyncExitStack() as stack:
        found: list[MCPEndpoint] = []

        async def mcp(scope: Any, receive: Any, send: Any) -> None:
            await found[0](scope, receive, send)

        house = House(tmp_path, mcp=mcp)
        draining = Draining(house.app)
        house.app = draining
        url = await stack.enter_async_context(house.serve())

        async def key() -> bytes:
            return b"k" * 32

        found.append(await stack.enter_async_context(MCPEndpoint(house.door, house.hub, key=key)))
        token = (await house.admission.create(ROOT, "developer", name="Ada")).token
        headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {token}"}
        client = await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=20))
        opened = await client.post("/mcp", json=HELLO, headers=headers)
        headers |= {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-06-18"}
        yield Place(house, client, token, url, headers, draining, short)


def _text(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["result"]["content"][0]["text"]
    return text


async def test_the_second_request_with_the_same_head_takes_it_and_is_answered_alike(place: Place) -> None:
    """What is quicker must be the same to whoever asks: status, headers, answer, record."""
    first, second = await place.call("a", name=7), await place.call("b", name="eight")
    assert len(place.short) == 1
    assert {**first.json(), "id": "eight"} == second.json()
    changing = {"content-length", "date"}
    assert {k: v for k, v in first.headers.items() if k not in changing} == {
        k: v for k, v in second.headers.items() if k not in changing
    }
    assert [dict(call) for call in place.house.push.calls] == [{"branch": "feature/a"}, {"branch": "feature/b"}]
    records = await all_of(place.house.store, RecordFilter(kind="call"))
    assert [record.outcome for record in records] == ["ok", "ok"]


@pytest.mark.parametrize(
    "more", [{"Mcp-Session-Id": "other"}, {"Origin": "http://evil.example"}, {"Authorization": "Bearer sqb_x"}]
)
async def test_another_head_goes_the_long_way(place: Place, more: dict[str, str]) -> None:
    """Of one head nothing follows for another."""
    await place.call()
    await place.call()
    before = len(place.short)
    assert (await place.call(more=more)).status_code in (401, 403, 404)
    assert len(place.short) == before == 1


async def test_a_token_that_is_revoked_is_refused_at_once(place: Place) -> None:
    """The short way must not be a way around the wall: not even for a second."""
    _text(await place.call())
    _text(await place.call())
    await place.house.admission.revoke(ROOT, place.token.split("_")[1])
    assert (await place.call()).status_code == 401
    assert len(place.house.push.calls) == 2


async def test_a_token_is_looked_up_again_once_in_a_while_and_then_the_way_is_short_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known gets old; to look again must not cost those who come later the short way."""
    _text(await place.call())
    _text(await place.call())
    assert len(place.short) == 1
    with monkeypatch.context() as old:
        old.setattr(admission, "_STALE", 0.0)
        _text(await place.call())
    assert len(place.short) == 1
    _text(await place.call())
    _text(await place.call())
    records = await all_of(place.house.store, RecordFilter(kind="call"))
    assert [record.outcome for record in records] == ["ok"] * 5
    assert len(place.short) == 3


async def test_a_role_that_loses_its_tools_is_refused_at_once(place: Place) -> None:
    """Whoever may do what can change while clients stay connected."""
    _text(await place.call())
    _text(await place.call())
    place.house.permissions.replace(MCPToolMapper({"designer": ROLES["designer"]}))
    assert (await place.call()).status_code == 401
    place.house.permissions.replace(MCPToolMapper(ROLES))
    _text(await place.call())
    by = Caller("", member="m", origin="api")
    await place.house.door.change_grant(by, role="developer", server="git", tool="push", enabled=False)
    assert (await place.call()).json()["error"]["code"] == -32602
    assert len(place.house.push.calls) == 3


async def test_a_session_that_has_ended_is_not_found(place: Place) -> None:
    """A client that gets 404 begins anew; one that gets answers goes on in a session that nobody keeps."""
    _text(await place.call())
    _text(await place.call())
    assert (await place.client.delete("/mcp", headers=place.headers)).status_code == 200
    assert (await place.call()).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', 400),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 200),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', 202),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', 400),
    ],
)
async def test_what_is_no_plain_request_goes_the_long_way_with_its_whole_body(
    place: Place, body: bytes, status: int
) -> None:
    """What is wrong is said, and put on record, by those who always do."""
    headers = {**place.headers, "Content-Type": "application/json"}
    await place.call()
    for _ in range(2):
        assert (await place.client.post("/mcp", content=body, headers=headers)).status_code == status
    assert place.short == []
    _text(await place.call())


async def test_lists_take_it_too(place: Place) -> None:
    """Clients ask for them again and again."""
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    first, second = [await place.client.post("/mcp", json=ask, headers=place.headers) for _ in range(2)]
    assert first.json() == second.json()
    assert len(place.short) == 1


async def test_requests_sent_one_behind_the_other_are_answered_in_their_order(place: Place) -> None:
    """HTTP allows it: an answer that overtakes another is another's answer."""
    _text(await place.call())
    host = place.url.removeprefix("http://")
    lines = [f"{name}: {value}" for name, value in {"Host": host, **place.headers}.items()]

    def request(number: int, method: str) -> bytes:
        params = {"name": "mcp_git_push", "arguments": {"branch": f"feature/{number}"}}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        head = ["POST /mcp HTTP/1.1", *lines, "Content-Type: application/json", f"Content-Length: {len(body)}"]
        return "\r\n".join([*head, "", ""]).encode() + body

    methods = ["tools/call", "tools/call", "ping", "tools/call", "tools/call"]
    async with await anyio.connect_tcp("127.0.0.1", int(host.rsplit(":", 1)[1])) as stream:
        for _ in range(2):
            await stream.send(b"".join(request(number, method) for number, method in enumerate(methods)))
            said = b""
            with anyio.fail_after(20):
                while said.count(b'"jsonrpc"') < len(methods):
                    said += await stream.receive()
            ids = [json.loads(b"{" + part.split(b"}", 1)[0].split(b",")[1] + b"}")["id"] for part in _bodies(said)]
            assert ids == list(range(len(methods)))


def _bodies(said: bytes) -> list[bytes]:
    return [b'{"jsonrpc"' + part for part in said.split(b'{"jsonrpc"')[1:]]


async def test_a_gateway_that_ends_turns_new_ones_away_and_says_so_to_those_that_it_cuts_off(place: Place) -> None:
    """Nobody may be left with a connection that is just closed, nor slip in at the last moment."""
    _text(await place.call())
    gate = anyio.Event()
    place.house.push.waits_for = gate
    answers: list[httpx2.Response] = []

    async def late() -> None:
        answers.append(await place.call("late"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(late)
        await until(lambda: len(place.house.push.calls) == 2, what="the call at its server")
        assert place.draining.calls == 1
        place.draining.closing = True
        assert (await place.call("new")).status_code == 503
        place.draining.cut_off()
    assert answers[0].status_code == 503
    assert "shutting down" in answers[0].text
    assert place.draining.calls == 0
    records = await all_of(place.house.store, RecordFilter(kind="call"))
    assert [record.outcome for record in records] == ["ok", "cancelled"]


async def test_a_client_cancels_its_own_request(place: Place) -> None:
    """The handshake era cancels by a message; hanging up is not one."""
    _text(await place.call())
    place.house.push.waits_for = anyio.Event()
    answers: list[httpx2.Response] = []

    async def waits() -> None:
        answers.append(await place.call("long", name=9))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waits)
        await until(lambda: len(place.house.push.calls) == 2, what="the call at its server")
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}
        assert (await place.client.post("/mcp", json=cancel, headers=place.headers)).status_code == 202
    assert answers[0].json()["error"]["message"] == "Request cancelled"


async def test_progress_on_the_short_way_comes_as_a_stream(place: Place) -> None:
    """What a server says meanwhile must reach a client however its request came."""
    _text(await place.call())
    place.house.push.progress = [(1.0, 2.0, "half")]
    params = {
        "name": "mcp_git_push",
        "arguments": {"branch": "feature/p"},
        "_meta": {"progressToken": "t"},
    }
    message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
    answer = await place.client.post("/mcp", json=message, headers=place.headers)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    said = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert [one.get("method") for one in said] == ["notifications/progress", None]
    assert said[0]["params"]["message"] == "half"
    assert said[1]["id"] == 5
    await until(lambda: len(place.short) == 1, what="the end of the request")
    _text(await place.call())


async def test_a_fault_of_ours_is_answered_and_told(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asked must not wait for ever, and whoever runs it must hear of it."""
    _text(await place.call())

    async def breaks(self: Lane, body: bytes, post: Any) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(Lane, "serve", breaks)
    assert (await place.call()).status_code == 500
    assert "a request failed inside squidbot" in caplog.text


async def test_a_large_body_goes_the_long_way(place: Place) -> None:
    """The short way looks at a body in one piece."""
    _text(await place.call())
    assert "result" in (await place.call("x" * wire._SHORT)).json()
    assert place.short == []
