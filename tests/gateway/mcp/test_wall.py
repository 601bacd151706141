"""The wall between roles, at both paths: what is listed can be called, nothing else can, and the servers say so too."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.shipped_roles import SHIPPED
from tests.conformance.gateway import SERVER
from tests.fixtures.running import plain_entry
from tests.fixtures.trail import all_of
from tests.gateway.mcp.house import House, house
from tests.gateway.mcp.test_bad_input import META, modern, whole

pytestmark = pytest.mark.anyio
COUNTING = Path(__file__).parents[2] / "faults/promises/counting_server.py"
TOOLS = sorted(
    {(server, tool) for _, servers in SHIPPED.values() for server, tools in servers.items() for tool in tools}
)
ADMIN = Caller("operator", origin="cli")


def counting(folder: Path) -> dict[str, dict[str, Any]]:
    """A server for each that the shipped roles know, with all of its tools; each counts its calls in a file."""
    return {
        server: {
            "command": sys.executable,
            "args": [str(COUNTING), str(folder / server), *(tool for owner, tool in TOOLS if owner == server)],
            "protocol": "legacy",
        }
        for server in {server for server, _ in TOOLS}
    }


def counted(folder: Path) -> Counter[tuple[str, str]]:
    return Counter(
        (server, json.loads(line))
        for server in {server for server, _ in TOOLS}
        if (folder / server).exists()
        for line in (folder / server).read_text().splitlines()
    )


async def called(opened: House, http: httpx2.AsyncClient, server: str | None, name: str) -> bool:
    """Whether a plain call goes through."""
    answer = await http.post(opened.at(server), **modern("tools/call", {"name": name, "arguments": {}}))
    assert answer.status_code < 500
    return answer.status_code == 200 and not whole(answer)["result"].get("isError", False)


def spellings(server: str, tool: str) -> list[tuple[str | None, str]]:
    """Names that look like the tool's, where they are not."""
    return [
        (None, tool),
        (server, f"mcp_{server}_{tool}"),
        (server, tool.replace("i", "\u0131") + "\u200b"),
    ]


@pytest.mark.deadline(240)
@pytest.mark.requirement("E-01", "G-01")
async def test_every_role_reaches_exactly_its_tools_at_both_paths(tmp_path: Path) -> None:
    """T1: nine roles, all tools, both paths, under the right name, the other path's name, and one that looks like it."""
    async with house(counting(tmp_path), {}) as opened:
        allowed: Counter[tuple[str, str]] = Counter()
        for role, (_, grants) in SHIPPED.items():
            async with opened.http(role) as http:
                listed = whole(await http.post(opened.at(), **modern("tools/list")))["result"]["tools"]
                mine = {f"mcp_{server}_{tool}" for server, tools in grants.items() for tool in tools}
                assert {tool["name"] for tool in listed} == mine
                for server, tool in TOOLS:
                    may = tool in grants.get(server, ())
                    assert await called(opened, http, None, f"mcp_{server}_{tool}") == may
                    assert await called(opened, http, server, tool) == may
                    allowed[server, tool] += 2 * may
                    for path, name in spellings(server, tool):
                        assert not await called(opened, http, path, name)
        assert counted(tmp_path) == +allowed


@pytest.mark.requirement("E-01", "G-01")
async def test_whoever_is_nobody_gets_nothing() -> None:
    """T2: no token, no role, a role that does not exist, a path that does not exist, a role that was taken away."""
    roles = {"tester": {"tools": {"plain": ["*"]}}, "other": {"tools": {"second": ["*"]}}}
    async with house({"plain": plain_entry(), "second": plain_entry()}, roles) as opened:

        async def status(role: str | None, path: str) -> int:
            async with opened.http(role) as http:
                return (await http.post(f"{opened.url}{path}", **modern("tools/list"))).status_code

        assert await status(None, "") == 401
        assert await status("~", "") == 403  # a token without a role
        assert await status("nobody", "") == 403
        assert await status("operator", "") == 403
        assert await status("tester", "/nowhere") == 404
        assert await status("tester", "/second") == 404
        assert await status("tester", "/plain/more") == 404
        assert await status("tester", "/plain") == 200
        async with opened.http("tester") as http:
            absent = await http.post(f"{opened.url}/nowhere", **modern("tools/list"))
            foreign = await http.post(f"{opened.url}/second", **modern("tools/list"))
            assert absent.content == foreign.content
        for tool in ("echo", "pid"):
            await opened.door.change_grant(ADMIN, role="tester", server="plain", tool=tool, enabled=False)
        await opened.door.change_grant(ADMIN, role="tester", server="plain", tool="*", enabled=False)
        async with opened.http("tester") as http:
            answer = await http.post(opened.at(), **modern("tools/list"))
            assert answer.status_code in (403, 404) or whole(answer)["result"]["tools"] == []
            assert not await called(opened, http, None, "mcp_plain_pid")


@pytest.mark.requirement("E-01", "G-01")
async def test_a_state_that_a_server_handed_to_one_caller_is_worth_nothing_to_another() -> None:
    """T7: a stolen `requestState` is refused, and so is one for another tool."""
    entry = {"command": sys.executable, "args": ["-W", "ignore", "-m", "tests.conformance.everything"]}
    roles = {name: {"tools": {SERVER: ["*"]}} for name in ("owner", "thief")}
    name = "test_input_required_result_request_state"
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    async with house({SERVER: entry}, roles) as opened:

        async def ask(role: str, tool: str, **more: Any) -> dict[str, Any]:
            request = modern("tools/call", {"name": tool, "arguments": {}, **more})
            body = json.loads(request["content"])
            body["params"]["_meta"] = meta
            async with opened.http(role) as http:
                return whole(await http.post(opened.at(SERVER), content=json.dumps(body), headers=request["headers"]))

        asked = (await ask("owner", name))["result"]
        assert asked["resultType"] == "input_required"
        answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
        stolen = await ask("thief", name, inputResponses=answers, requestState=asked["requestState"])
        assert stolen["error"]["code"] == -32602
        other = "test_input_required_result_tampered_state"
        misused = await ask("owner", other, inputResponses=answers, requestState=asked["requestState"])
        assert misused["error"]["code"] == -32602
        forged = await ask("owner", name, inputResponses=answers, requestState="s3cr3t-forged." + "A" * 43)
        assert forged["error"] == {"code": -32602, "message": "Invalid or expired requestState"}
        kept = [
            (record.kind, record.role, record.squad_member_id, record.server, record.tool, record.arguments)
            for record in await all_of(opened.store, RecordFilter(outcome="refused"))
        ]
        assert kept == [
            ("call", role, f"m-{role}", SERVER, tool, "{}")
            for role, tool in (("thief", name), ("owner", other), ("owner", name))
        ]
        mine = await ask("owner", name, inputResponses=answers, requestState=asked["requestState"])
        assert mine["result"]["content"][0]["text"] == "state-ok"


@pytest.mark.requirement("E-01", "E-05", "G-01")
@pytest.mark.parametrize(
    ("method", "params", "kind", "asked_for"),
    [
        ("prompts/get", {"name": "test_simple_prompt", "arguments": {}}, "prompt", "test_simple_prompt"),
        ("resources/read", {"uri": "test://static-text"}, "resource", "test://static-text"),
    ],
)
async def test_a_forged_state_is_on_record_whatever_it_is_for(
    method: str, params: dict[str, Any], kind: str, asked_for: str
) -> None:
    """One record, with who came with it and for what, and without the state."""
    entry = {"command": sys.executable, "args": ["-W", "ignore", "-m", "tests.conformance.everything"]}
    async with house({SERVER: entry}, {"owner": {"tools": {SERVER: ["*"]}}}) as opened:
        async with opened.http("owner") as http:
            for state in ("forged", "e30." + "A" * 43, ""):
                answer = await http.post(
                    opened.at(SERVER), **modern(method, {**params, "requestState": state}, **{"mcp-name": asked_for})
                )
                assert whole(answer)["error"]["code"] == -32602
        records = await all_of(opened.store, RecordFilter(outcome="refused"))
    assert [(record.kind, record.tool, record.arguments) for record in records] == [(kind, asked_for, "{}")] * 3
