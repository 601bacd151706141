"""What a client should not send: the code that the protocol names, a short message, one record, and never a 5xx."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.shared.inbound import encode_header_value

from squidbot.core.domain.audit import RecordFilter, ToolExecution
from squidbot.core.domain.endpoint import EndpointOptions
from tests.fixtures.running import plain_entry, until
from tests.gateway.mcp.house import House, house

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01")]
ROLE = "tester"
BOTH = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def plain(*arguments: str, options: EndpointOptions | None = None) -> AsyncIterator[House]:
    roles = {ROLE: {"tools": {"plain": ["echo"]}}}
    async with house({"plain": plain_entry(*arguments)}, roles, options=options) as opened:
        yield opened


def modern(method: str, params: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    """A request of the stateless era, as arguments of httpx2."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": META}}
    name = {"mcp-name": encode_header_value(params["name"])} if params and "name" in params else {}
    routing = {"mcp-protocol-version": "2026-07-28", "mcp-method": method, **name}
    return {"content": json.dumps(body), "headers": {**BOTH, **routing, **headers}}


def call(text: str = "hello", **headers: str) -> dict[str, Any]:
    return modern("tools/call", {"name": "echo", "arguments": {"text": text}}, **headers)


async def records(opened: House) -> list[ToolExecution]:
    return [record async for record in opened.door.recorder._log.records(RecordFilter())]


def whole(answer: httpx2.Response) -> dict[str, Any]:
    body: dict[str, Any] = answer.json()
    assert body["jsonrpc"] == "2.0"
    return body


DEEP = '{"a":' * 150 + "1" + "}" * 150
BROKEN: dict[str, tuple[str, int]] = {
    "no JSON": ("{", -32700),
    "the same key twice": ('{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', -32700),
    "not a number": (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":NaN}}}',
        -32700,
    ),
    "a number without end": ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":1e999}}', -32700),
    "a huge integer": ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":' + "9" * 5_000 + "}}", -32700),
    "half a character": ('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":"\\ud800"}}', -32700),
    "bad UTF-8": ('{"jsonrpc":"2.0","id":1,"method":"p\udcffing"}', -32700),
    "too deep": (f'{{"jsonrpc":"2.0","id":1,"method":"ping","params":{DEEP}}}', -32600),
    "far too deep": ("[" * 100_000, -32600),
    "too many keys": (
        json.dumps({"jsonrpc": "2.0", "id": 1, "params": dict.fromkeys(map(str, range(100_000)))}),
        -32600,
    ),
    "a batch": ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    "no object": ("3", -32600),
    "no version": ('{"id":1,"method":"ping"}', -32600),
    "a strange id": ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    "params that are no object": ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600),
    "another spelling of method": ('{"jsonrpc":"2.0","id":1,"Method":"ping"}', -32600),
}


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_body_that_is_no_message_is_refused_with_the_protocols_code(version: str) -> None:
    """T15 and T18: two readers who understand one body in two ways are how checks are passed by."""
    async with plain() as opened, opened.http(ROLE) as http:
        for what, (body, code) in BROKEN.items():
            content = body.encode("utf-8", "surrogateescape")
            headers = {**BOTH, "mcp-protocol-version": version}
            answer = await http.post(opened.at(), content=content, headers=headers)
            assert (what, answer.status_code, whole(answer)["error"]["code"]) == (what, 400, code)
            assert len(answer.content) < 500


async def test_headers_that_do_not_fit_are_refused() -> None:
    """Accept, Content-Type, the method, the version: each has its own answer."""
    async with plain() as opened, opened.http(ROLE) as http:
        url, body = opened.at(), '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
        assert (await http.post(url, content=body, headers={**BOTH, "accept": "text/html"})).status_code == 406
        assert (await http.post(url, content=body, headers={**BOTH, "content-type": "text/plain"})).status_code == 415
        assert (await http.post(url, content=body, headers=BOTH)).status_code == 400
        assert (await http.put(url, content=body, headers=BOTH)).status_code == 405
        assert (await http.get(url, headers={**BOTH, "mcp-protocol-version": "2026-07-28"})).status_code == 405
        assert (await http.get(url, headers=BOTH)).status_code == 400
        wrong = modern("tools/list", None, **{"mcp-protocol-version": "2031-01-01"})
        wrong["content"] = wrong["content"].replace("2026-07-28", "2031-01-01")
        refused = await http.post(url, **wrong)
        assert refused.status_code == 400
        assert whole(refused)["error"]["code"] == -32022
        assert whole(refused)["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}


async def test_a_body_that_is_too_large_is_refused_in_a_way_that_arrives() -> None:
    """T15: announced or not; whoever is cut off while it still sends never sees why."""
    async with plain() as opened, opened.http(ROLE) as http:
        large = b"x" * (5 * 2**20)

        async def dripping() -> AsyncIterator[bytes]:
            for start in range(0, len(large), 65_536):
                yield large[start : start + 65_536]

        assert (await http.post(opened.at(), content=large, headers=BOTH)).status_code == 413
        assert (await http.post(opened.at(), content=dripping(), headers=BOTH)).status_code == 413
        assert (await http.post(opened.at("plain"), **call())).status_code == 200


async def test_a_header_that_names_another_tool_than_the_body_is_refused_and_recorded_under_the_bodys() -> None:
    """T24: what decides and what is recorded is what would be done."""
    async with plain() as opened, opened.http(ROLE) as http:
        answer = await http.post(opened.at("plain"), **call(**{"mcp-name": "pid"}))
        assert answer.status_code == 400
        assert whole(answer)["error"]["code"] == -32020
        assert whole(answer)["id"] == 1
        kept = await records(opened)
        assert [(record.server, record.tool, record.outcome) for record in kept] == [("plain", "echo", "refused")]


async def test_what_is_recorded_is_what_is_sent(tmp_path: Path) -> None:
    """T18: members that only look like the protocol's are no part of the call."""
    heard = tmp_path / "heard"
    async with plain("--lines", str(heard)) as opened, opened.http(ROLE) as http:
        text = 'NUL \u0000, quote ", snowman ☃, \u2028'
        request = call(text)
        body = json.loads(request["content"])
        body["param\u017f"] = body["Params"] = {"name": "pid"}
        body["params"]["Name"] = "pid"
        body["params"]["arguments\u0000"] = {"text": "other"}
        request["content"] = json.dumps(body)
        answer = await http.post(opened.at("plain"), **request)
        assert whole(answer)["result"]["content"][0]["text"] == text
        [record] = await records(opened)
        assert json.loads(record.arguments) == {"text": text}
        sent = [json.loads(line) for line in heard.read_text().splitlines() if '"tools/call"' in line]
        assert [message["params"]["arguments"] for message in sent] == [{"text": text}]


async def test_every_refusal_is_on_record_and_looks_as_the_table_says() -> None:
    """Unknown and forbidden look the same; arguments that do not fit are listed for whoever wrote them."""
    async with plain() as opened, opened.http(ROLE) as http:
        forbidden = await http.post(opened.at("plain"), **modern("tools/call", {"name": "pid", "arguments": {}}))
        unknown = await http.post(opened.at("plain"), **modern("tools/call", {"name": "nope", "arguments": {}}))
        joined = await http.post(opened.at(), **modern("tools/call", {"name": "mcp_plain_pid", "arguments": {}}))
        nobody = await http.post(opened.at(), **modern("tools/call", {"name": "echo", "arguments": {}}))
        for answer, name in ((forbidden, "pid"), (unknown, "nope"), (joined, "mcp_plain_pid"), (nobody, "echo")):
            assert answer.status_code == 400
            assert whole(answer)["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
        misfit = await http.post(opened.at("plain"), **modern("tools/call", {"name": "echo", "arguments": {"text": 3}}))
        result = whole(misfit)["result"]
        assert result["isError"]
        assert "text" in result["content"][0]["text"]
        odd = await http.post(opened.at("plain"), **modern("tools/call", {"name": "echo", "arguments": [1]}))
        assert whole(odd)["error"]["code"] == -32602
        kept = await records(opened)
        assert [record.outcome for record in kept] == ["refused"] * 6
        for answer in (forbidden, unknown, joined, nobody, misfit, odd):
            assert not {"Traceback", "/squidbot/", str(Path.home())} & set(answer.text.split())


async def test_a_server_that_is_gone_is_an_error_result_with_the_cause() -> None:
    """T22: in short, without paths."""
    roles = {ROLE: {"tools": {"gone": ["*"]}}}
    entry = {"command": "/no/such/program/anywhere", "startup_timeout": 2}
    async with house({"gone": entry}, roles) as opened, opened.http(ROLE) as http:
        answer = await http.post(opened.at("gone"), **call())
        result = whole(answer)["result"]
        assert answer.status_code == 200
        assert result["isError"]
        assert "'gone' is not available" in result["content"][0]["text"]
        assert "/no/such" not in answer.text


async def test_one_stream_too_many_is_refused_and_the_others_live() -> None:
    """T15: a bound that is reached hurts the newcomer, not those who are there."""
    async with plain(options=EndpointOptions(most_streams=3)) as opened, opened.http(ROLE) as http:
        listen = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        listen["headers"].pop("mcp-name", None)
        streams = []
        for _ in range(3):
            stream = http.stream("POST", opened.at(), **listen)
            answer = await stream.__aenter__()
            assert answer.headers["content-type"] == "text/event-stream"
            streams.append(stream)
        refused = await http.post(opened.at(), **listen)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert (await http.post(opened.at("plain"), **call())).status_code == 200
        assert opened.endpoint.streams == 3
        for stream in streams:
            await stream.__aexit__(None, None, None)
        await until(lambda: opened.endpoint.streams == 0, what="the end of the streams")
