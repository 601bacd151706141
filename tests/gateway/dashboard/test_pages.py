"""What each page shows, and what its forms do, over HTTP, with a real database and a real server behind it."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import ToolNotPermitted
from tests.fixtures.running import until
from tests.fixtures.window import SETUP, Window
from tests.gateway.dashboard.reading import csrf_of, elements, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-04")]

AGENT = Caller("backend_developer", member="m_agent", origin="mcp")


async def refused(gateway: Window, role: str, tool: str) -> None:
    with pytest.raises(ToolNotPermitted):
        await gateway.door.execute_tool(Caller(role, origin="mcp"), "plain", tool, {"text": "x"})


async def test_the_overview_counts_calls_errors_and_refusals(gateway: Window) -> None:
    """Whoever opens the page sees in one look whether all is well."""
    for _ in range(3):
        await gateway.call("backend_developer", "plain", "echo", {"text": "hi"})
    await refused(gateway, "qa_tester", "echo")
    async with gateway.signed_in() as browser:
        page = (await browser.get("/")).text
    tiles = {tile.text for tile in elements(page) if "tile" in tile.attributes.get("class", "").split()}
    assert any(re.match(r"Servers ready 1 of 2 broken: see why", tile) for tile in tiles), tiles
    assert any(tile.startswith("Calls 4 ") for tile in tiles), tiles
    assert any(tile.startswith("Refused 1 ") for tile in tiles), tiles
    drawings = elements(page, "svg", role="img")
    assert len(drawings) == 2
    described = " ".join(element.text for element in elements(page, "desc"))
    assert "4 calls, no errors, 1 refused." in described
    assert "The highest p95 was" in described
    assert elements(page, "rect", class_="bar-refused")
    assert "plain/echo" in text_of(page)


async def test_an_overview_of_nothing_says_what_to_run(gateway: Window) -> None:
    """An empty page is the first that most people see."""
    async with gateway.signed_in() as browser:
        for span in ("1h", "6h", "24h", "7d", "nonsense"):
            page = (await browser.get(f"/?span={span}")).text
            assert "squidbot practice story" in text_of(page)
        assert "No record fits." in text_of((await browser.get("/calls?kind=call")).text)
        assert "Nothing unusual was seen." in text_of((await browser.get("/alerts")).text)


async def test_servers_say_how_they_are_and_why(gateway: Window) -> None:
    """Why a server is away, and what to do about it, is on the page and not only in the log."""
    async with gateway.signed_in() as browser:
        page = (await browser.get("/servers")).text
    broken = elements(page, "section", id="server-broken")[0].text
    assert "failed" in broken
    assert "'no-such-program-anywhere' was not found" in broken
    plain = elements(page, "section", id="server-plain")[0].text
    assert "ready" in plain
    assert "plain 1.0" in plain


async def test_a_server_is_started_anew_by_its_button(gateway: Window) -> None:
    """The process is another one afterwards, and the record says who did it."""
    before = await gateway.door.execute_tool(AGENT, "plain", "pid", {})
    async with gateway.signed_in() as browser:
        word = csrf_of((await browser.get("/servers")).text)
        answer = await browser.post("/servers/plain/restart", data={"csrf": word})
        assert answer.headers["location"] == "/servers#server-plain"
        page = (await browser.get("/servers")).text
        assert "Server 'plain' was started anew; it is ready now." in text_of(page)
        assert "was started anew" not in (await browser.get("/servers")).text
        assert (await browser.post("/servers/nobody/restart", data={"csrf": word})).status_code == 404
    after = await gateway.door.execute_tool(AGENT, "plain", "pid", {})
    assert before.text != after.text
    kept = [record async for record in gateway.store.records(RecordFilter(kind="settings"))]
    assert [(record.role, record.tool, record.origin) for record in kept] == [("admin", "restart", "dashboard")]


async def test_tools_are_found_by_words_server_and_role(gateway: Window) -> None:
    """Among hundreds of tools, finding is the page's first duty."""

    async def found(query: str) -> list[str]:
        page = (await browser.get(f"/tools?{query}")).text
        return [link.text for link in elements(page, "a", class_="mono")]

    async with gateway.signed_in() as browser:
        assert await found("") == ["echo", "pid"]
        assert await found("q=says+AGAIN") == ["echo"]
        assert await found("server=broken") == []
        assert await found("role=designer") == ["echo"]
        assert await found("q=nothing-like-it") == []


async def test_one_tool_shows_its_schema_and_who_may(gateway: Window) -> None:
    """Before somebody grants a tool they can read all that is known of it."""
    async with gateway.signed_in() as browser:
        page = (await browser.get("/tool?server=plain&tool=echo")).text
        assert (await browser.get("/tool?server=plain&tool=gone")).status_code == 404
    words = text_of(page)
    assert "mcp_plain_echo" in words
    assert "Says the text again" in words
    assert '"required": [ "text" ]' in words
    assert [tag.text for tag in elements(page, "a", class_="tag")] == ["backend_developer", "designer"]


async def test_a_tool_is_tried_in_a_role_and_recorded_with_both_names(gateway: Window) -> None:
    """An admin has no tools of their own: the role's rules decide, and the record names the person too."""
    async with gateway.signed_in() as browser:
        page = (await browser.get("/tool?server=plain&tool=echo")).text
        form = {"csrf": csrf_of(page), "role": "backend_developer", "arg.text": "line one\r\nline two"}
        answer = await browser.post("/tool?server=plain&tool=echo", data=form)
    result = elements(answer.text, "section", id="result")[0].text
    assert result.startswith("What came of it ok as backend_developer")
    assert "line one line two" in result
    [record] = [record async for record in gateway.store.records(RecordFilter(kind="call"))]
    grace = next(token for token in await gateway.admission.list() if token.name == "Grace Hopper")
    assert (record.role, record.squad_member_id, record.origin) == ("backend_developer", grace.member, "dashboard")
    assert record.arguments == '{"text":"line one\\nline two"}'


async def test_trying_a_tool_obeys_the_role(gateway: Window) -> None:
    """The browser is one more way in, and no way around."""
    async with gateway.signed_in() as browser:
        word = csrf_of((await browser.get("/")).text)

        async def tried(role: str, text: str) -> str:
            form = {"csrf": word, "role": role, "arg.text": text}
            answer = await browser.post("/tool?server=plain&tool=echo", data=form)
            return text_of(answer.text)

        assert "may not use 'echo' of server 'plain'" in await tried("qa_tester", "hello")
        assert "What came of it ok as designer" in await tried("designer", "hello there")
        assert "may not use 'echo'" in await tried("designer", "goodbye")
        assert "there is no role 'operator'" in (await tried("operator", "x")).replace("There", "there")
    outcomes = [record.outcome async for record in gateway.store.records(RecordFilter(kind="call"))]
    assert outcomes == ["refused", "ok", "refused"]


async def test_every_role_can_try_exactly_what_the_grid_allows(gateway: Window) -> None:
    """Listed, shown and callable are one thing (T1): every role, every tool, by the form itself."""
    async with gateway.signed_in() as browser:
        page = (await browser.get("/roles")).text
        word = csrf_of(page)
        grid = {
            cell.attributes["title"].partition(":")[0]: cell.text
            for cell in elements(page, "a")
            if "data-explain" in cell.attributes
        }
        for name, verdict in grid.items():
            role, _, tool = name.partition(", ")
            form = {"csrf": word, "role": role, "arg.text": "hello"}
            answer = await browser.post(f"/tool?server=plain&tool={tool}", data=form)
            result = elements(answer.text, "section", id="result")[0].text
            assert result.startswith("What came of it ok") == (verdict != "refused"), name
            assert ("may not use" in result) == (verdict == "refused"), name


async def test_the_grid_says_allowed_conditional_and_refused(gateway: Window) -> None:
    """A yes that holds for some arguments only is no plain yes."""
    async with gateway.signed_in() as browser:
        page = (await browser.get("/roles")).text
    cells = {
        cell.attributes["title"].partition(":")[0]: cell.text
        for cell in elements(page, "a")
        if "data-explain" in cell.attributes
    }
    assert cells["backend_developer, echo"] == "allowed"
    assert cells["designer, echo"] == "conditional"
    assert cells["designer, pid"] == "refused"
    assert len(cells) == 9 * 2


async def test_a_cell_is_explained(gateway: Window) -> None:
    """Why, by which rule: so that nobody has to guess what a change would do."""
    async with gateway.signed_in() as browser:
        told = text_of((await browser.get("/explain?role=designer&server=plain&tool=echo")).text)
        assert "when text matches hello*" in told
        told = text_of((await browser.get("/explain?role=designer&server=plain&tool=pid")).text)
        assert "none: what is not granted is refused" in told
        unknown = await browser.get("/explain?role=nobody&server=plain&tool=pid")
        assert "there is no role 'nobody'" in text_of(unknown.text)
        assert not elements(unknown.text, "form", action="/grants")


@pytest.mark.requirement("E-04")
async def test_a_grant_changed_in_the_grid_is_felt_at_once(gateway: Window) -> None:
    """A revocation that takes until the next restart is none."""
    async with gateway.signed_in() as browser:
        word = csrf_of((await browser.get("/roles")).text)
        form = {"csrf": word, "role": "qa_tester", "server": "plain", "tool": "echo"}
        await refused(gateway, "qa_tester", "echo")
        answer = await browser.post("/grants", data={**form, "change": "grant"})
        assert answer.headers["location"] == "/roles?server=plain"
        page = text_of((await browser.get("/roles")).text)
        assert "'echo' of server 'plain' is granted to 'qa_tester', from now on." in page
        await gateway.call("qa_tester", "plain", "echo", {"text": "x"})
        assert "allowed, changed while running" in text_of((await browser.get("/roles")).text)
        await browser.post("/grants", data={**form, "change": "revoke"})
        await refused(gateway, "qa_tester", "echo")
        for wrong in ({"change": "maybe"}, {"change": "grant", "tool": ""}):
            assert (await browser.post("/grants", data={**form, **wrong})).status_code == 422
        for wrong in ({"role": "nobody"}, {"server": "nowhere"}):
            assert (await browser.post("/grants", data={**form, "change": "grant", **wrong})).status_code == 404
    kept = [record async for record in gateway.store.records(RecordFilter(kind="grant", server="plain"))]
    assert [(record.role, record.tool, record.origin) for record in kept] == [("admin", "echo", "dashboard")] * 2


async def test_calls_are_filtered_and_paged_without_loss(gateway: Window) -> None:
    """An audit trail that skips a row between two pages proves nothing."""
    made = [await gateway.call("backend_developer", "plain", "echo", {"text": str(n)}) for n in range(60)]
    await refused(gateway, "qa_tester", "echo")

    def ids(page: str) -> list[str]:
        rows = [row.attributes["data-record"] for row in elements(page, "tr") if "data-record" in row.attributes]
        assert len(rows) <= 50
        return rows

    async with gateway.signed_in() as browser:
        page = (await browser.get("/calls?role=backend_*&server=plain&tool=ec*&outcome=ok&kind=call&since=1h")).text
        older = next(link for link in elements(page, "a") if link.text == "Older").attributes["href"]
        rest = (await browser.get(older)).text
        assert ids(page) + ids(rest) == made[::-1]
        assert any(link.text == "Newest" for link in elements(rest, "a"))
        assert len(ids((await browser.get("/calls?outcome=refused&kind=call")).text)) == 1
        assert ids((await browser.get("/calls?since=2199-01-01")).text) == []
        strange = text_of((await browser.get("/calls?since=yesterday-ish")).text)
        assert "'yesterday-ish' is no time: everything is shown." in strange
        assert "Begin at the newest." in text_of((await browser.get("/calls?after=!!!")).text)


async def test_one_call_is_shown_whole(gateway: Window) -> None:
    """What was asked, what came of it, by whom, under which grants."""
    record = await gateway.call("backend_developer", "plain", "echo", {"text": "all of it"})
    async with gateway.signed_in() as browser:
        words = text_of((await browser.get(f"/call?id={record}")).text)
        assert (await browser.get("/call?id=none")).status_code == 404
    for part in ('"text": "all of it"', "backend_developer", "m_agent", "mcp", record, "revision"):
        assert part in words


async def test_the_record_is_verified_and_a_changed_row_is_named(gateway: Window, home: Path) -> None:
    """The button is worth what it finds."""
    record = await gateway.call("backend_developer", "plain", "echo", {"text": "true"})
    async with gateway.signed_in() as browser:
        word = csrf_of((await browser.get("/calls")).text)
        assert "The record is whole" in text_of((await browser.post("/calls/verify", data={"csrf": word})).text)
        with closing(sqlite3.connect(home / "state/audit.db")) as connection, connection:
            connection.execute("UPDATE tool_execution_logs SET role = 'somebody' WHERE id = ?", (record,))
        told = text_of((await browser.post("/calls/verify", data={"csrf": word})).text)
    assert "The record is not whole." in told
    assert record in told


async def test_alerts_lead_to_the_calls_behind_them(gateway: Window) -> None:
    """An alert that cannot be looked into is noise."""
    record = await gateway.call("backend_developer", "plain", "echo", {"text": "first"})
    async with gateway.signed_in() as browser:

        async def alerts() -> str:
            return (await browser.get("/alerts")).text

        async def came() -> bool:
            return "for the first time" in await alerts()

        await until(came, what="the alert")
        page = await alerts()
    assert [link.attributes["href"] for link in elements(page, "a") if link.text == "the call"] == [
        f"/call?id={record}"
    ]


async def test_a_token_is_shown_once_and_can_be_taken_back(gateway: Window) -> None:
    """Only its fingerprint is kept, so that a stolen database opens nothing."""
    async with gateway.signed_in() as browser:
        word = csrf_of((await browser.get("/tokens")).text)
        form = {"csrf": word, "name": "margaret", "opens": "role:qa_tester", "expires": "30d"}
        made = await browser.post("/tokens", data=form)
        token = elements(made.text, "code", id="made-token")[0].text
        who = await gateway.admission.admit(token)
        assert who is not None
        assert (who.role, who.name) == ("qa_tester", "margaret")
        assert f"{gateway.url}/mcp" in text_of(made.text)
        page = (await browser.get("/tokens")).text
        assert token not in page
        assert "margaret" in text_of(page)
        answer = await browser.post(f"/tokens/{who.token}/revoke", data={"csrf": word})
        assert answer.headers["location"] == "/tokens"
        assert await gateway.admission.admit(token) is None
        assert (await browser.post("/tokens/none/revoke", data={"csrf": word})).status_code == 404
        for wrong in ({"opens": "role:nobody"}, {"opens": "operator"}, {"name": ""}, {"expires": "soon"}):
            answer = await browser.post("/tokens", data={**form, **wrong})
            assert answer.status_code == 422
            assert not elements(answer.text, "code", id="made-token")


async def test_an_auditor_sees_everything_and_changes_nothing(gateway: Window) -> None:
    """Looking and changing are two rights; a button that is not there is still refused."""
    await gateway.call("backend_developer", "plain", "echo", {"text": "seen"})
    token = await gateway.admission.create(SETUP, "qa_tester", name="agent")
    before = len([record async for record in gateway.store.records(RecordFilter())])
    async with gateway.signed_in(gateway.auditor) as browser:
        pages = ("/", "/servers", "/tools", "/tool?server=plain&tool=echo", "/roles", "/calls", "/alerts", "/tokens")
        for path in (*pages, "/explain?role=designer&server=plain&tool=pid"):
            page = await browser.get(path)
            assert page.status_code == 200
            actions = {form.attributes["action"] for form in elements(page.text, "form", method="post")}
            assert actions <= {"/theme", "/sign-out", "/calls/verify"}, path
        word = csrf_of(page.text)
        for path, form in (
            ("/servers/plain/restart", {}),
            ("/tool?server=plain&tool=echo", {"role": "backend_developer", "arg.text": "x"}),
            ("/grants", {"role": "qa_tester", "server": "plain", "tool": "echo", "change": "grant"}),
            ("/tokens", {"name": "me", "opens": "right:admin", "expires": ""}),
            (f"/tokens/{token.record.id}/revoke", {}),
        ):
            answer = await browser.post(path, data={"csrf": word, **form})
            assert answer.status_code == 403, path
            assert "only by 'admin'" in text_of(answer.text)
    after = [record async for record in gateway.store.records(RecordFilter())]
    assert [record.kind for record in after[before:]] == ["sign_in"]
    assert await gateway.admission.admit(token.token) is not None


async def test_the_colours_are_kept_without_a_script(gateway: Window) -> None:
    """Everything but live updates works without JavaScript, this too."""
    async with gateway.signed_in() as browser:
        page = (await browser.get("/tools?q=echo")).text
        assert "data-theme" not in elements(page, "html")[0].attributes
        form = {"csrf": csrf_of(page), "theme": "dark", "back": "/tools?q=echo"}
        answer = await browser.post("/theme", data=form)
        assert answer.headers["location"] == "/tools?q=echo"
        assert elements((await browser.get("/")).text, "html")[0].attributes["data-theme"] == "dark"
        await browser.post("/theme", data={**form, "theme": ""})
        assert "data-theme" not in elements((await browser.get("/")).text, "html")[0].attributes


async def test_a_form_that_is_none_is_refused_shortly(gateway: Window) -> None:
    """What no browser sends gets a short answer, and no fault of ours."""
    async with gateway.signed_in() as browser:
        for content, kind in (
            (b"{}", "application/json"),
            (b"\xff\xfe=1", "application/x-www-form-urlencoded"),
            (b"csrf=%ff", "application/x-www-form-urlencoded"),
            (b"a=1&" * 1_000, "application/x-www-form-urlencoded"),
            (b"a=" + b"x" * 1_100_000, "application/x-www-form-urlencoded"),
        ):
            answer = await browser.post("/grants", content=content, headers={"Content-Type": kind})
            assert answer.status_code == 422
        assert (await browser.get("/nowhere")).status_code == 404
        assert "There is no such page" in text_of((await browser.get("/nowhere")).text)
