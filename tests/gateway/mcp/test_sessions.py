"""Sessions of the handshake era: an id that any gateway can read, that nobody else can use, and that ends."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.domain.members import Principal
from squidbot.core.services.hub import Hub
from squidbot.gateway.mcp.endpoint import MCPEndpoint
from squidbot.gateway.mcp.seal import Seal
from squidbot.gateway.mcp.session import new_session, unsealed
from tests.fixtures.running import plain_entry, running, until
from tests.gateway.mcp.house import KEY, House, house, known, listening
from tests.gateway.mcp.test_bad_input import BOTH

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01")]
ROLES = {name: {"tools": {"plain": ["echo"], "world": ["*"]}} for name in ("ann", "ben")}
ANN = Principal("m-ann", "ann", "t-ann", role="ann")


def message(method: str, number: int | None = 1, **params: Any) -> str:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(body if number is None else {**body, "id": number})


async def begin(http: httpx2.AsyncClient, url: str, capabilities: dict[str, Any] | None = None) -> dict[str, str]:
    """Initialize; the headers of all that follows."""
    info = {"name": "test", "version": "1"}
    opening = message("initialize", protocolVersion="2025-11-25", capabilities=capabilities or {}, clientInfo=info)
    answer = await http.post(url, content=opening, headers=BOTH)
    assert answer.status_code == 200, answer.text
    headers = {**BOTH, "mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    told = await http.post(url, content=message("notifications/initialized", None), headers=headers)
    assert told.status_code == 202
    return headers


@asynccontextmanager
async def plain(**options: Any) -> AsyncIterator[House]:
    async with house({"plain": plain_entry()}, ROLES, options=EndpointOptions(**options)) as opened:
        yield opened


async def test_a_session_is_its_openers_alone_and_only_where_it_was_opened() -> None:
    """T7: another's session, another path's, a changed one and none at all: 404 or 400, as clients recover from."""
    async with plain() as opened, opened.http("ann") as ann, opened.http("ben") as ben:
        headers = await begin(ann, opened.at())
        lists = message("tools/list")
        assert (await ann.post(opened.at(), content=lists, headers=headers)).status_code == 200
        assert (await ben.post(opened.at(), content=lists, headers=headers)).status_code == 404
        assert (await ann.post(opened.at("plain"), content=lists, headers=headers)).status_code == 404
        shown = headers["mcp-session-id"]
        for wrong in (shown[:-1], shown + "A", "A" + shown, shown.swapcase(), "nonsense", "a.b", "."):
            answer = await ann.post(opened.at(), content=lists, headers={**headers, "mcp-session-id": wrong})
            assert (wrong, answer.status_code) == (wrong, 404)
        without = {key: value for key, value in headers.items() if key != "mcp-session-id"}
        assert (await ann.post(opened.at(), content=lists, headers=without)).status_code == 400


async def test_a_session_ends_when_its_client_says_so_or_its_time_is_over() -> None:
    """What has ended is 404 for good."""
    async with plain(session_lifetime=3600) as opened, opened.http("ann") as http:
        headers = await begin(http, opened.at())
        assert (await http.delete(opened.at(), headers=headers)).status_code == 200
        assert (await http.post(opened.at(), content=message("ping"), headers=headers)).status_code == 404
        assert (await http.delete(opened.at(), headers=headers)).status_code == 404
    seal = Seal(KEY)
    old = new_session(ANN, None, version="2025-11-25", params={}, gateway="g", expires=time.time() - 1)
    assert unsealed(old.sealed(seal), seal, now=time.time()) is None
    assert unsealed(old.sealed(Seal(b"x" * 32)), seal, now=0) is None
    assert unsealed(old.sealed(seal), seal, now=0) == old


async def test_an_idle_session_ends_with_its_resources() -> None:
    """A client that never says goodbye must not be remembered for ever."""
    async with plain(session_idle=0.4) as opened, opened.http("ann") as http:
        headers = await begin(http, opened.at())

        async def over() -> bool:
            await anyio.sleep(0.6)
            return (await http.post(opened.at(), content=message("ping"), headers=headers)).status_code == 404

        await until(over, what="the end of the session")


async def test_what_an_idle_session_subscribed_to_is_given_back() -> None:
    """A server must not go on telling of what nobody hears any more."""
    with running("stdio") as entry:
        async with (
            house({"world": entry}, ROLES, options=EndpointOptions(session_idle=0.4)) as opened,
            opened.http("ann") as http,
        ):
            with opened.door.hub.listen(["call"]) as heard:
                headers = await begin(http, opened.at("world"))
                asked = message("resources/subscribe", uri="world://note")
                assert (await http.post(opened.at("world"), content=asked, headers=headers)).status_code == 200
                told: list[Any] = []
                with anyio.fail_after(30):
                    while len(told) < 2:
                        data = (await heard.receive()).data
                        if data["kind"] == "subscription":
                            told.append(data["arguments"])
    assert [json.loads(item)["wanted"] if isinstance(item, str) else item["wanted"] for item in told] == [True, False]


async def test_a_session_has_one_stream() -> None:
    """The second is refused, and the first goes on; when it is gone there may be another."""
    async with plain() as opened, opened.http("ann") as http:
        headers = await begin(http, opened.at())
        async with http.stream("GET", opened.at(), headers=headers) as stream:
            assert stream.headers["content-type"] == "text/event-stream"
            assert (await http.get(opened.at(), headers=headers)).status_code == 409
        await until(lambda: opened.endpoint.streams == 0, what="the end of the stream")
        async with http.stream("GET", opened.at(), headers=headers) as stream:
            assert stream.status_code == 200
            await http.delete(opened.at(), headers=headers)
            async for _ in stream.aiter_bytes():
                pass  # the end of the session is the end of its stream


async def test_a_call_that_takes_long_becomes_a_stream_that_is_kept_alive() -> None:
    """A proxy that hears nothing for a minute hangs up; an answer that is quick needs no stream."""
    with running("stdio") as entry:
        options = EndpointOptions(patience=0.5)
        async with house({"world": entry}, ROLES, options=options) as opened, opened.http("ann") as http:
            headers = await begin(http, opened.at("world"))
            quick = message("tools/list")
            answer = await http.post(opened.at("world"), content=quick, headers=headers)
            assert answer.headers["content-type"] == "application/json"
            slow = message("tools/call", name="slow", arguments={"seconds": 2, "token": "t"})
            answer = await http.post(opened.at("world"), content=slow, headers=headers)
            assert answer.headers["content-type"] == "text/event-stream"
            assert answer.text.count(": ping") >= 2
            assert "slept 2" in answer.text


@asynccontextmanager
async def two_gateways() -> AsyncIterator[tuple[House, str]]:
    """Two endpoints with hubs of their own, which tell each other: the second one's address beside the first."""
    with running("stdio") as entry:
        async with house({"world": entry}, ROLES) as first, AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            here, there = first.door.hub, Hub()
            here.outward = lambda happening: there.publish(happening, local=True)
            there.outward = lambda happening: here.publish(happening, local=True)
            second = await stack.enter_async_context(MCPEndpoint(first.door, there, key=_key))
            url = await stack.enter_async_context(listening(known(second), tasks))
            yield first, f"{url}/mcp/world"


async def _key() -> bytes:
    return KEY


async def test_any_gateway_answers_a_session_and_takes_its_answers_and_its_cancelling() -> None:
    """Behind a load balancer, a call and what concerns it need not arrive at the same place."""
    async with two_gateways() as (first, second), first.http("ann") as http, first.http("ann") as other:
        headers = await begin(http, first.at("world"), {"elicitation": {}})
        ask = message("tools/call", name="ask", arguments={})
        async with http.stream("POST", first.at("world"), content=ask, headers=headers) as stream:
            lines = stream.aiter_lines()
            asked = await _data(lines)
            assert asked["method"] == "elicitation/create"
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"colour": "red"}}}
            told = await other.post(second, content=json.dumps(answer), headers=headers)
            assert told.status_code == 202
            assert "red" in str((await _data(lines))["result"])
        slow = message("tools/call", 7, name="slow", arguments={"seconds": 60, "token": "t"})
        answers: list[httpx2.Response] = []

        async def wait() -> None:
            answers.append(await http.post(first.at("world"), content=slow, headers=headers))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)

            async def cancelled() -> bool:
                await other.post(second, content=message("notifications/cancelled", None, requestId=7), headers=headers)
                await anyio.sleep(0.05)
                return bool(answers)

            await until(cancelled, what="the cancelling")
        assert answers[0].json()["error"]["code"] == -32800
        assert (await other.delete(second, headers=headers)).status_code == 200

        async def ended() -> bool:
            return (await http.post(first.at("world"), content=message("ping"), headers=headers)).status_code == 404

        await until(ended, what="the end at the first")


async def _data(lines: AsyncIterator[str]) -> dict[str, Any]:
    async for line in lines:
        if line.startswith("data:"):
            found: dict[str, Any] = json.loads(line.removeprefix("data:"))
            return found
    raise AssertionError("the stream ended")
