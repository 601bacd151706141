"""The HTTP API: the shapes of the outer surface, the table of refusals, and nothing for who has no right."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest

from squidbot.core.domain.audit import RECORD_COLUMNS, RecordFilter
from squidbot.core.domain.roles import MCPToolMapper
from squidbot.gateway.api.table import OPERATIONS
from tests.fakes.door import FakeTool
from tests.fixtures.house import House, client
from tests.fixtures.trail import all_of, call

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01")]

CALL = "/api/v1/tools/{}/call"


async def test_a_role_sees_and_calls_its_own_tools(tmp_path: Path) -> None:
    """The same whitelist as at every other door, in the shapes of `tools list` and `tools call`."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("developer")) as ada:
        listed = (await ada.get("/api/v1/tools")).json()
        assert [tool["name"] for tool in listed] == ["mcp_git_push", "mcp_git_log"]
        assert set(listed[0]) == {"name", "server", "tool", "description", "parameters"}
        answer = await ada.post(CALL.format("mcp_git_log"), json={})
        assert answer.status_code == 200
        assert set(answer.json()) == {
            *("name", "server", "tool", "is_error", "content", "structured", "duration_ms", "record"),
        }
        assert answer.json()["content"] == [{"type": "text", "text": "done"}]
        (record,) = await all_of(house.store, RecordFilter(kind="call"))
        assert (record.id, record.origin, record.role) == (answer.json()["record"], "api", "developer")
        assert record.squad_member_id is not None


async def test_what_a_role_may_not_use_is_not_there(tmp_path: Path) -> None:
    """To a role, forbidden and unknown are the same answer; both are recorded, and neither reaches a server."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("developer")) as ada:
        forbidden, unknown = [
            await ada.post(CALL.format(name), json={}) for name in ("mcp_figma_draw", "mcp_figma_none")
        ]
        shown = [answer.text.replace("draw", "none") for answer in (forbidden, unknown)]
        assert forbidden.status_code == unknown.status_code == 404
        assert shown[0] == shown[1]
        looked = [await ada.get(f"/api/v1/tools/{name}") for name in ("mcp_figma_draw", "mcp_figma_none")]
        assert [answer.status_code for answer in looked] == [404, 404]
        assert looked[0].text.replace("draw", "none") == looked[1].text
        # A condition that is not met is a refusal like any other.
        assert (await ada.post(CALL.format("mcp_git_push"), json={"arguments": {"branch": "main"}})).status_code == 404
        records = await all_of(house.store, RecordFilter(kind="call"))
        assert [record.outcome for record in records] == ["refused"] * 3
    assert (house.draw.calls, house.push.calls) == ([], [])


async def test_refusals_are_those_of_the_table(tmp_path: Path) -> None:
    """Programs act on these numbers."""
    house = House(tmp_path)
    async with house.serve() as url:
        async with client(url, await house.token("developer")) as ada:
            misfit = await ada.post(CALL.format("mcp_git_push"), json={"arguments": {"branch": 7}})
            assert misfit.status_code == 404  # a branch that is no text meets no condition
            house.permissions.replace(house.permissions.mapper)
        async with client(url, await house.token("admin")) as admin:
            grant = {"role": "designer", "server": "git", "tool": "push"}
            assert (await admin.post("/api/v1/grants", json=grant)).status_code == 200
        async with client(url, await house.token("designer")) as bob:
            misfit = await bob.post(CALL.format("mcp_git_push"), json={"arguments": {}})
            assert (misfit.status_code, misfit.json()["error"]["code"]) == (422, "invalid_arguments")
            assert "branch" in misfit.json()["error"]["message"]
            away = await bob.post(CALL.format("mcp_late_anything"), json={})
            assert (away.status_code, away.json()["error"]["code"]) == (503, "unavailable")
        async with client(url, await house.token("limited")) as eve:
            assert (await eve.post(CALL.format("mcp_git_log"), json={})).status_code == 200
            limited = await eve.post(CALL.format("mcp_git_log"), json={})
            assert (limited.status_code, limited.json()["error"]["code"]) == (429, "limited")
            assert 1 <= int(limited.headers["retry-after"]) <= 60
    assert house.faults == []


@pytest.mark.requirement("E-01", "E-03")
@pytest.mark.deadline(240)
async def test_every_shipped_role_has_exactly_its_whitelist_at_the_api(tmp_path: Path) -> None:
    """Threat T1: nine roles, every tool, by the name that agents see and by others: what is granted, and nothing else."""
    mapper = MCPToolMapper()
    known = sorted({(g.server, g.tool) for role in mapper.roles.values() for g in role.grants if "*" not in g.tool})
    tools = [FakeTool(server, tool) for server, tool in known]
    house = House(tmp_path, mapper=mapper, tools=tools)
    cases = 0
    async with house.serve() as url:
        for role in mapper.roles:
            async with client(url, await house.token(role)) as somebody:
                listed = {tool["name"] for tool in (await somebody.get("/api/v1/tools")).json()}
                for tool in tools:
                    name, before = tool.definition.name, len(tool.calls)
                    allowed = mapper.can_use_tool(role, *tool.definition.id)
                    assert (name in listed) is allowed
                    for spelt in (name, name.upper(), f"{name} ", f"{tool.definition.server}/{tool.definition.tool}"):
                        answer = await somebody.post(CALL.format(quote(spelt, safe="")), json={})
                        assert answer.status_code == (200 if allowed and spelt == name else 404), (role, spelt)
                        cases += 1
                    assert len(tool.calls) - before == int(allowed)
        refused = await all_of(house.store, RecordFilter(kind="call", outcome="refused"))
        called = sum(len(tool.calls) for tool in tools)
        # A name with a slash is no path of the API at all: it comes to nothing before anybody is asked.
        assert len(refused) == cases * 3 // 4 - called
    assert cases >= 9 * 4 * 20


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
async def test_rights_hold_on_every_path(tmp_path: Path, operation: Any) -> None:
    """A role's token has its tools and nothing else; an auditor's changes nothing."""
    house = House(tmp_path)
    path = "/api/v1" + operation.path.format(server="git", tool="mcp_git_log", role="developer", record="x", token="x")
    words = {"role": "developer", "server": "git", "tool": "log", "name": "Eve"}
    body = {key: given for key, given in words.items() if key in operation.body}
    query = {key: given for key, given in words.items() if key in operation.needed and key in operation.query}
    async with house.serve() as url:
        before = len(await all_of(house.store, RecordFilter(kind="call")))
        async with client(url, await house.token("developer")) as ada:
            own = operation.id in ("tools", "tool", "call_tool")
            answer = await ada.request(operation.method, path, params=query, json=body if operation.body else None)
            assert answer.status_code == (200 if own else 403), answer.text
        changes = operation.needs in ("an admin", "a role's token, or an admin")
        if changes:
            async with client(url, await house.token("auditor")) as eve:
                answer = await eve.request(operation.method, path, params=query, json=body if operation.body else None)
                assert answer.status_code == 403
        called = len(await all_of(house.store, RecordFilter(kind="call"))) - before
        assert called == (1 if operation.id == "call_tool" else 0)
        assert house.restarted == []
        assert (await house.store.load()).changes == ()


async def test_an_admin_tries_a_tool_in_a_role_and_is_told_why_not(tmp_path: Path) -> None:
    """Whoever makes the rules may know them."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("admin", name="Root")) as admin:
        tried = await admin.post(CALL.format("mcp_git_log"), json={"role": "developer"})
        assert tried.status_code == 200
        refused = await admin.post(CALL.format("mcp_git_log"), json={"role": "designer"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_permitted")
        assert "designer" in refused.json()["error"]["message"]
        assert (await admin.post(CALL.format("mcp_git_log"), json={})).status_code == 422
        assert (await admin.post(CALL.format("mcp_git_log"), json={"role": "operator"})).status_code == 404
        record = (await all_of(house.store, RecordFilter(kind="call")))[0]
        tokens = (await admin.get("/api/v1/tokens")).json()
        assert (record.role, record.squad_member_id) == ("developer", tokens[0]["member"])


async def test_a_grant_is_felt_at_once_and_named(tmp_path: Path) -> None:
    """What an admin changes, the next call of that role feels; the record says who it was."""
    house = House(tmp_path)
    async with (
        house.serve() as url,
        client(url, await house.token("admin", name="Root")) as admin,
        client(url, await house.token("designer")) as bob,
    ):
        assert (await bob.post(CALL.format("mcp_git_log"), json={})).status_code == 404
        grant = {"role": "designer", "server": "git", "tool": "log"}
        made = (await admin.post("/api/v1/grants", json=grant)).json()
        assert set(made) == {"role", "server", "tool", "enabled", "revision", "record"}
        assert (await bob.post(CALL.format("mcp_git_log"), json={})).status_code == 200
        assert (await admin.get("/api/v1/grants")).json() == [{**grant, "enabled": True}]
        record = (await admin.get(f"/api/v1/calls/{made['record']}")).json()
        assert (record["kind"], record["role"]) == ("grant", "admin")
        assert (await admin.delete("/api/v1/grants", params=grant)).json()["enabled"] is False
        assert (await bob.post(CALL.format("mcp_git_log"), json={})).status_code == 404
        decision = await admin.post("/api/v1/roles/designer/explain", json={"server": "git", "tool": "log"})
        assert decision.json()["allowed"] is False
        assert set(decision.json()) == {"allowed", "role", "server", "tool", "rule", "reason"}


async def test_tokens_are_made_listed_and_taken_back(tmp_path: Path) -> None:
    """The same answer as `tokens create --json`; afterwards the token is seen no more."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("admin", name="Root")) as admin:
        wanted = {"role": "developer", "name": "Ada", "expires": "30d"}
        made = await admin.post("/api/v1/tokens", json=wanted)
        assert made.status_code == 201
        assert list(made.json()) == ["id", "token", "role", "name", "expires"]
        async with client(url, made.json()["token"]) as ada:
            assert (await ada.get("/api/v1/tools")).status_code == 200
            listed = await admin.get("/api/v1/tokens")
            assert made.json()["token"].rsplit("_", 1)[1] not in listed.text
            revoked = await admin.delete(f"/api/v1/tokens/{made.json()['id']}")
            assert revoked.json()["revoked"] is True
            assert (await ada.get("/api/v1/tools")).status_code == 401
        for bad, status in (
            ({**wanted, "role": "operator"}, 404),
            ({**wanted, "expires": "soon"}, 422),
            ({**wanted, "name": ""}, 422),
            ({**wanted, "more": 1}, 422),
            ({"role": "developer"}, 422),
        ):
            assert (await admin.post("/api/v1/tokens", json=bad)).status_code == status, bad
        assert (await admin.delete("/api/v1/tokens/nobody")).status_code == 404


async def test_records_are_read_by_filter_page_by_page(tmp_path: Path) -> None:
    """An auditor finds what happened, under the names of the columns."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("auditor")) as eve:
        for number in range(7):
            await call(house.store, tool="git_push" if number % 2 else "git_log", timestamp=house.clock.timestamp())
        first = (await eve.get("/api/v1/calls", params={"tool": "git_*", "limit": 4})).json()
        rest = (await eve.get("/api/v1/calls", params={"tool": "git_*", "limit": 4, "cursor": first["next"]})).json()
        assert (len(first["records"]), len(rest["records"]), rest["next"]) == (4, 3, None)
        assert tuple(first["records"][0]) == RECORD_COLUMNS
        ids = [record["id"] for page in (first, rest) for record in page["records"]]
        assert len(set(ids)) == 7
        assert (await eve.get(f"/api/v1/calls/{ids[0]}")).json()["id"] == ids[0]
        assert (await eve.get("/api/v1/calls/verify")).json()["ok"] is True
        usage = (await eve.get("/api/v1/calls/usage", params={"since": "1h"})).json()
        assert sum(item["calls"] for item in usage) == 7
        series = (await eve.get("/api/v1/calls/series", params={"seconds": 60, "count": 3})).json()
        assert sum(bucket["calls"] for bucket in series["buckets"]) == 7
        for bad in ({"limit": 0}, {"limit": "many"}, {"outcome": "fine"}, {"since": "soon"}, {"cursor": "x"}, {"x": 1}):
            answer = await eve.get("/api/v1/calls", params=bad)
            assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_arguments"), bad


@pytest.mark.requirement("E-04")
async def test_calls_are_streamed_as_they_end(tmp_path: Path) -> None:
    """Whoever watches sees a call when it is over, and only those that were asked for."""
    house = House(tmp_path)
    async with (
        house.serve() as url,
        client(url, await house.token("auditor")) as eve,
        client(url, await house.token("developer")) as ada,
        eve.stream("GET", "/api/v1/calls/stream?tool=log&kind=call") as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.aiter_lines()
        with anyio.fail_after(20):
            assert (await anext(lines)).startswith(":")
            await ada.post(CALL.format("mcp_git_push"), json={"arguments": {"branch": "feature/a"}})
            made = (await ada.post(CALL.format("mcp_git_log"), json={})).json()
            heard = [line async for line in _data(lines, 1)]
        assert [json.loads(line)["id"] for line in heard] == [made["record"]]


async def _data(lines: Any, count: int) -> Any:
    async for line in lines:
        if line.startswith("data: "):
            yield line.removeprefix("data: ")
            count -= 1
            if not count:
                return


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff", 400),
        (b'{"arguments": {"a": 1, "a": 2}}', 400),
        (b'{"arguments": {"a": NaN}}', 400),
        (b'{"arguments": {"a": 1e999}}', 400),
        (b'{"arguments": {"a": "\\ud800"}}', 400),
        (b"[" * 200 + b"]" * 200, 400),
        (b'{"arguments": ' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}", 400),
        (json.dumps({"arguments": {str(key): 1 for key in range(100_000)}}).encode(), 400),
        (b"[]", 422),
        (b"null", 422),
        (b'{"arguments": []}', 422),
        (b'{"Arguments": {}}', 422),
    ],
)
async def test_a_bad_body_is_refused_in_words(tmp_path: Path, body: bytes, status: int) -> None:
    """What two readers could understand in two ways, or what is too deep or too wide, reaches nobody."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("developer")) as ada:
        headers = {"Content-Type": "application/json"}
        answer = await ada.post(CALL.format("mcp_git_log"), content=body, headers=headers)
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"code", "message", "hint"}
    assert (house.log.calls, house.faults) == ([], [])


async def test_other_kinds_of_bodies_and_methods_are_refused(tmp_path: Path) -> None:
    """A form of another site's page is no JSON, and never will be."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("developer")) as ada:
        form = await ada.post(CALL.format("mcp_git_log"), data={"arguments": "{}"})
        assert form.status_code == 415
        wrong = await ada.put("/api/v1/tools")
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "not_allowed_here")
        assert "GET" in wrong.headers["allow"]
        assert (await ada.get("/api/v1/nothing")).status_code == 404
        assert (await ada.get("/api/v2/tools")).status_code == 404
        assert (await ada.post(CALL.format("mcp_git_log"))).status_code == 200


async def test_no_record_no_answer(tmp_path: Path) -> None:
    """When nothing can be recorded, nothing is done, and the place of the database is nobody's business."""
    house = House(tmp_path)
    async with house.serve() as url, client(url, await house.token("developer")) as ada:
        assert (await ada.get("/api/v1/tools")).status_code == 200
        await house.store._stop()
        answer = await ada.post(CALL.format("mcp_git_push"), json={"arguments": {"branch": "feature/a"}})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_recorded")
        assert str(tmp_path) not in answer.text
    assert (house.push.calls, house.faults) == ([], [])
