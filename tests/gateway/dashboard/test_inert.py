"""Foreign text is text: whatever a server or an agent writes, no page becomes something else by it (T17)."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import SquidbotError
from tests.fixtures.window import Window, settings_of, window
from tests.gateway.dashboard.nasty import NASTY
from tests.gateway.dashboard.reading import check_inert, csrf_of, elements, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-04")]

SERVER = """
import json, sys
texts = json.load(open(sys.argv[1]))
tools = [
    {"name": text[:200], "description": text, "annotations": {"title": text},
     "inputSchema": {"type": "object", "properties": {"p" + text[:100]: {"type": "string", "description": text, "enum": [text, "b"]}}}}
    for text in texts
]
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    result = {}
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "instructions": " ".join(texts),
                  "serverInfo": {"name": texts[0], "version": texts[1]}}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": text} for text in texts], "isError": asked["params"]["name"].startswith("<")}
    elif method == "server/discover":
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.fixture
async def gateway(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Window]:
    """A gateway in front of a server that writes nasty text wherever it can."""
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    (tmp_path / "texts.json").write_text(json.dumps(NASTY), encoding="ascii")
    entry = {"command": sys.executable, "args": ["-I", "-S", str(tmp_path / "server.py"), str(tmp_path / "texts.json")]}
    roles = {"backend_developer": {"description": NASTY[0], "tools": {"nasty": ["*"]}}}
    async with window(settings_of({"nasty": entry}, roles=roles)) as opened:
        yield opened


async def worked_through(gateway: Window) -> list[str]:
    """Nasty names, arguments, results, members and tokens; the ids of all records."""
    for text in NASTY:
        caller = Caller("backend_developer", member=text[:60], origin="mcp")
        for tool in (text[:200], f"no {text[:50]}"):
            try:
                await gateway.door.execute_tool(caller, "nasty", tool, {"p" + text[:100]: text, text[:50]: text})
            except SquidbotError:
                continue
    for text in NASTY[:6]:
        who = await gateway.admission.admit(gateway.admin)
        assert who is not None
        await gateway.desk.create_token(who, "backend_developer", name=text[:60])
    return [record.id async for record in gateway.store.records(RecordFilter())]


def sendable(text: str) -> str:
    """As a browser puts it into an address."""
    return text.encode("utf-8", "replace").decode()


@pytest.mark.deadline(120)
async def test_no_page_becomes_anything_else_by_what_others_wrote(gateway: Window) -> None:
    """A tool's name that runs in an admin's browser would own the gateway."""
    ids = await worked_through(gateway)
    async with gateway.signed_in() as browser:
        for path in ("/", "/servers", "/tools", "/roles", "/calls", "/alerts", "/tokens"):
            answer = await browser.get(path)
            assert answer.status_code == 200, path
            check_inert(answer.text, path)
        page = answer.text
        for record in ids:
            check_inert((await browser.get("/call", params={"id": record})).text, record)
        for text in NASTY:
            query = {
                "q": text,
                "server": text,
                "role": text,
                "tool": text,
                "since": text,
                "outcome": text,
                "after": text,
            }
            for path in ("/tools", "/calls", "/explain", "/tool", "/roles", "/call", "/sign-in"):
                asked = {**query, "id": text, "next": text, "code": text}
                answer = await browser.get(path, params={name: sendable(value) for name, value in asked.items()})
                assert answer.status_code in (200, 404), (path, text)
                check_inert(answer.text, path)
            for path in ("/tool", "/explain"):
                params = {"role": "backend_developer", "server": "nasty", "tool": sendable(text[:200])}
                check_inert((await browser.get(path, params=params)).text, path)
        word = csrf_of(page)
        form = {"csrf": word, "role": "backend_developer"}
        answer = await browser.post("/tool", params={"server": "nasty", "tool": NASTY[1]}, data=form)
        check_inert(answer.text, "try")
        assert elements(answer.text, "section", id="result")


async def test_hidden_characters_of_a_description_are_shown(gateway: Window) -> None:
    """What nobody sees in a description, a model still reads."""
    hidden = "\U000e0041\U000e0042hidden tags"
    async with gateway.signed_in() as browser:
        page = (await browser.get("/tool", params={"server": "nasty", "tool": hidden})).text
    assert "2 hidden characters" in text_of(page)
    marks = [mark.text for mark in elements(page, "mark", class_="unseen")]
    assert marks[:2] == ["\\U000e0041", "\\U000e0042"]
