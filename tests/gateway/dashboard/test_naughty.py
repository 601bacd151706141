"""The Big List of Naughty Strings through the door, the log and the dashboard: text in, the same text out (T17)."""

import json
import re

import httpx2
import pytest

from squidbot.adapters.telemetry.logging import log_server_message, set_up_logging
from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import SquidbotError
from squidbot.core.domain.servers import ServerLog
from tests.fixtures.naughty import as_name, naughty_strings
from tests.fixtures.running import plain_entry
from tests.fixtures.window import Window, settings_of, window
from tests.gateway.dashboard.reading import check_inert, elements

pytestmark = pytest.mark.anyio

ROLES = {"backend_developer": {"tools": {"plain": ["*"]}}}
LIMITS = [{"role": "*", "rate": "100000/s", "burst": 100_000}]
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+ +\S")


async def called(gateway: Window, text: str) -> None:
    """The string as an argument and as the answer, then as the name of a tool."""
    caller = Caller("backend_developer", member=text or "nobody", origin="mcp")
    result = await gateway.door.execute_tool(caller, "plain", "echo", {"text": text})
    assert result.text == text
    with pytest.raises(SquidbotError):
        await gateway.door.execute_tool(caller, "plain", f"{text}?", {text: text})


@pytest.mark.requirement("G-04", "E-05")
@pytest.mark.deadline(240)
async def test_every_string_is_one_record_each_time_and_inert_on_every_page() -> None:
    """Whatever breaks a page, a query or a row has broken one somewhere before, and is on this list."""
    strings = naughty_strings()
    async with window(settings_of({"plain": plain_entry()}, roles=ROLES, limits=LIMITS)) as gateway:
        for text in strings:
            await called(gateway, text)
        records = [record async for record in gateway.store.records(RecordFilter(role="backend_developer"))]
        names = [name for text in strings for name in ("echo", as_name(f"{text}?"))]
        assert [record.tool[:200] for record in records] == names
        assert [json.loads(record.arguments) for record in records[::2]] == [{"text": text} for text in strings]
        assert [record.outcome for record in records] == ["ok", "refused"] * len(strings)
        assert (await gateway.store.verify()).ok
        async with gateway.signed_in() as browser:
            for record in records[::2]:
                await seen(browser, "/call", id=record.id)
            for text in strings:
                await seen(browser, "/tool", server="plain", tool=f"{text}?", role=text)
            page = await seen(browser, "/calls")
            listed = 0
            while page:
                listed += len([element for element in elements(page) if "data-record" in element.attributes])
                older = [e.attributes["href"] for e in elements(page, "a") if e.text == "Older"]
                page = await seen(browser, older[0]) if older else ""
            assert listed > len(records)


async def seen(browser: httpx2.AsyncClient, path: str, **query: str) -> str:
    """A page that is nothing else than it should be."""
    answer = await browser.get(path, params=query or None)
    assert answer.status_code in (200, 404), (path, query)
    check_inert(answer.text, f"{path} {query!r}")
    return answer.text


@pytest.mark.requirement("G-06")
def test_every_string_is_one_line_of_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    """A line that somebody else can begin is an entry that somebody else can forge."""
    strings = naughty_strings()
    set_up_logging(verbosity=2)
    capfd.readouterr()
    for number, text in enumerate(strings):
        log_server_message(ServerLog(f"s{number}", "error", text))
    lines = capfd.readouterr().err.split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(strings)
    for number, line in enumerate(lines):
        assert LINE.match(line), line
        assert f"s{number}: " in f"{line} ", line
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b\u202e\ufeff]", line), line
