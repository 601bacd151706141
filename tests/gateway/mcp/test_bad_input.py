"""What a client should not send: the code that the protocol names, a short message, one record, and never a 5xx."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.shared.inbound import encode_header_value

from squidbot.core.domain.audit import RecordFilter, ToolExecution
from squidbot.core.domain.endpoint import EndpointOptions
from tests.fakes.door import FakeAuditLog
from tests.fixtures.running import plain_entry, until
from tests.gateway.mcp.house import HEADER, House, house

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
            record = (await records(opened))[-1]
            assert (record.kind, record.tool, record.outcome) == ("request", "request", "refused")
            assert (record.role, record.squad_member_id, record.origin) == (ROLE, f"m-{ROLE}", "mcp")
            assert json.loads(record.arguments) == {"status": 400, "code": code}
            assert record.error_message == whole(answer)["error"]["message"]
        assert len(await records(opened)) == len(BROKEN)


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
        kept = [(record.kind, json.loads(record.arguments)["status"]) for record in await records(opened)]
        # Another method than POST is how clients find out what there is.
        assert kept == [("request", status) for status in (406, 415, 400, 400, 400)]


async def test_a_version_of_the_handshakes_that_nobody_knows_is_refused_once() -> None:
    """A notification and an answer have no id, and are on record all the same."""
    async with plain() as opened, opened.http(ROLE) as http:
        headers = {**BOTH, "mcp-protocol-version": "1999-01-01"}
        for body in ('{"jsonrpc":"2.0","method":"notifications/initialized"}', '{"jsonrpc":"2.0","id":1,"result":{}}'):
            assert (await http.post(opened.at("plain"), content=body, headers=headers)).status_code == 400
        opening = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":3}}'
        assert (await http.post(opened.at("plain"), content=opening, headers=BOTH)).status_code == 400
        kept = await records(opened)
        assert [(record.kind, record.server, record.outcome) for record in kept] == [
            ("request", "plain", "refused")
        ] * 3


async def test_a_flood_of_what_is_no_message_leaves_few_records_that_tell_of_the_others() -> None:
    """One broken client must not be able to fill the disk, nor to hide what others do."""
    async with plain() as opened, opened.http(ROLE) as http:
        for _ in range(60):
            assert (await http.post(opened.at(), content="[]", headers=BOTH)).status_code == 400
        assert 20 <= len(await records(opened)) <= 22
        assert (await http.post(opened.at("plain"), **modern("tools/call", {"name": "nope"}))).status_code == 400
        assert (await records(opened))[-1].tool == "nope"


async def test_who_leaves_before_the_end_of_a_body_is_no_matter_of_record() -> None:
    """There is nobody to answer, and nothing that somebody said."""
    async with plain() as opened, opened.http(ROLE) as http:
        where = httpx2.URL(opened.url)
        begun = f"POST /mcp HTTP/1.1\r\nhost: x\r\n{HEADER.decode()}: {ROLE}\r\ncontent-length: 99\r\n"
        begun += "".join(f"{name}: {value}\r\n" for name, value in BOTH.items())
        async with await anyio.connect_tcp(where.host, where.port or 0) as stream:
            await stream.send(f"{begun}\r\n{{".encode())
        assert (await http.post(opened.at("plain"), **call())).status_code == 200
        assert [record.kind for record in await records(opened)] == ["call"]


async def test_a_part_of_the_door_that_a_role_does_not_have_is_on_record() -> None:
    """What is there and what is not look the same, but somebody has tried."""
    async with plain() as opened, opened.http(ROLE) as http, opened.http("nobody") as nobody:
        assert (await http.post(opened.at("secret"), **call())).status_code == 404
        assert (await nobody.post(opened.at("plain"), **call())).status_code == 403
        kept = await records(opened)
        found = [(record.kind, record.server, record.role, record.outcome) for record in kept]
        assert found == [("request", "secret", ROLE, "refused"), ("request", "plain", "nobody", "refused")]


async def test_what_cannot_be_recorded_makes_no_fault_of_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: what is no message is still the client's fault, and a call that cannot be recorded is the documented 503."""
    async with plain() as opened, opened.http(ROLE) as http:
        monkeypatch.setattr(opened.door.recorder, "_log", FakeAuditLog(broken=True))
        for content, status in (("{", 400), ("[]", 400), ("x" * (5 * 2**20), 413)):
            assert (await http.post(opened.at(), content=content, headers=BOTH)).status_code == status
        mismatch = await http.post(opened.at("plain"), **call(**{"mcp-name": "pid"}))
        assert (mismatch.status_code, mismatch.headers["retry-after"]) == (503, "5")
        assert "not recorded" in whole(mismatch)["error"]["message"]
        misfit = await http.post(opened.at("plain"), **modern("tools/call", {"name": "echo", "arguments": [1]}))
        assert whole(misfit)["result"]["content"][0]["text"] == "not recorded, not done"


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
        kept = [(record.kind, json.loads(record.arguments).get("status")) for record in await records(opened)]
        assert kept == [("request", 413), ("request", 413), ("call", None)]


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
        nameless = modern("tools/call", {"name": "echo"})
        nameless["content"] = nameless["content"].replace('"echo"', "7")
        assert (await http.post(opened.at("plain"), **nameless)).status_code == 400
        kept = await records(opened)
        assert [record.outcome for record in kept] == ["refused"] * 7
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
