"""The Big List of Naughty Strings in what `squidbot audit` prints: one row each, and no row that does anything (T17)."""

import csv
import io
import json
import re
from pathlib import Path

import anyio
import pytest

from squidbot.config.load import load_settings
from squidbot.container import Container
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import SquidbotError
from tests.cli.conftest import Squidbot
from tests.fixtures.naughty import as_name, naughty_strings
from tests.fixtures.running import plain_entry

UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200b\u202e\ufeff]")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


async def work_through(strings: tuple[str, ...], settings: Path) -> None:
    """Each string as somebody's name and role, as a tool's name, and as its arguments: all of it is refused."""
    async with Container(settings=load_settings(settings)).service() as door:
        for text in strings:
            caller = Caller(text or "nobody", member=text, origin="mcp")
            with pytest.raises(SquidbotError):
                await door.execute_tool(caller, "plain", text, {text: text})


@pytest.mark.requirement("E-05", "E-12", "G-03")
@pytest.mark.deadline(120)
def test_every_string_is_one_inert_row_of_the_audit(squidbot: Squidbot, folder: Path) -> None:
    """Records are read in spreadsheets and on terminals, both of which run what they are given."""
    strings = naughty_strings()
    path = folder / "squidbot.json"
    path.write_text(json.dumps({"tools": {"mcp_servers": {"plain": plain_entry()}}}))
    anyio.run(work_through, strings, path)
    ran = squidbot("audit", "export", "--format", "csv", "--output", str(folder / "out.csv"))
    assert ran.code == 0
    [head, *rows] = csv.reader(io.StringIO((folder / "out.csv").read_text("utf-8"), newline=""))
    assert len(rows) == len(strings)
    for row, text in zip(rows, strings, strict=True):
        assert len(row) == len(head)
        assert not [cell for cell in row if cell.startswith(FORMULA)], row
        tool = row[head.index("tool")]
        assert tool[:200] == as_name(text) or tool[:201] == f"'{as_name(text)}", row
    names = [as_name(text) for text in strings]
    shown = squidbot("audit", "tail", "-n", "1000").out
    assert not UNSEEN.search(shown)
    assert len(shown.split("\n")) == len(strings) + 2
    assert [item["tool"][:200] for item in squidbot("audit", "tail", "-n", "1000", "--json").json] == names
    lines = squidbot("audit", "export").out.split("\n")
    assert [json.loads(line)["tool"][:200] for line in lines[:-1]] == names
