"""P8: a role reaches exactly its tools, however their names are spelt, counted at the servers.

python -m tests.faults.promises.wall [--generated 100000]

Nine roles x 27 tools x ten and more spellings, then names that Hypothesis makes up, through the guarded door with real servers and a real
record. Prints how many calls were tried, allowed and counted at a server; ends with 1 if one came through that must not.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Literal, TypeAlias

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from loguru import logger

from squidbot import AgentMCPService, MCPToolMapper, SquidbotError, create_agent_service
from squidbot.config.documents import Document
from squidbot.config.load import check_document
from squidbot.core.domain.roles import shipped_roles
from squidbot.core.domain.shipped_roles import SHIPPED

Case: TypeAlias = tuple[str, str, str]
"""A role, a server, a tool."""
AT_ONCE = 2_000

TOOLS = sorted(
    {(server, tool) for _, servers in SHIPPED.values() for server, tools in servers.items() for tool in tools}
)


def spellings(server: str, tool: str) -> list[tuple[str, str]]:
    """The tool's name, and names that look like it or could be taken for it."""
    return [
        (server, tool),
        (server, tool.upper()),
        (server, tool.title()),
        (server, f"mcp_{server}_{tool}"),
        (server, f"{server}/{tool}"),
        (server, f" {tool}"),
        (server, f"{tool} "),
        (server, f"{tool}\0"),
        (server, f"{tool}\n"),
        (server, tool.replace("_", "-")),
        (server, tool.replace("s", "\u017f")),
        (server, tool.replace("i", "\u0131")),
        (server, unicodedata.normalize("NFKC", tool.replace("_", "\uff3f")) + "\u200b"),
        (server.upper(), tool),
        (f"{server}\0", tool),
        ("", f"mcp_{server}_{tool}"),
        ("*", tool),
        (server, "*"),
        (server, tool[:-1] + "?"),
    ]


PIECES = [*("git", "github", "jira", "push", "merge", "_", "*", "?", "[a-z]", "\0", "mcp_", "GIT", "operator", "", " ")]
PIECES += [tool for _, tool in TOOLS]
ANY = st.text(st.characters(exclude_categories=()), max_size=24)
"""Halves of surrogate pairs too."""
BUILT = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)
FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """A real tool's name with something put in, taken out, doubled or written otherwise."""
    name = draw(st.sampled_from([tool for _, tool in TOOLS]))
    place = draw(st.integers(0, len(name)))
    match draw(st.integers(0, 4)):
        case 0:
            return name[:place] + draw(st.characters(exclude_categories=())) + name[place:]
        case 1:
            return name[: max(place - 1, 0)] + name[place:]
        case 2:
            return name[:place] + name[place:].swapcase()
        case 3:
            return unicodedata.normalize(draw(st.sampled_from(FORMS)), name[:place] + draw(ANY) + name[place:])
        case _:
            return name[:place] + name[max(place - 1, 0) :]


TOOL_NAMES = st.one_of(misspelt(), BUILT, ANY, st.sampled_from([tool for _, tool in TOOLS]))
SERVER_NAMES = st.one_of(
    st.sampled_from(["git", "github", "jira"]), st.sampled_from(["git", "github", "jira"]), BUILT, ANY
)
ROLE_NAMES = st.one_of(
    st.sampled_from([*SHIPPED]), st.sampled_from([*SHIPPED, "operator", "admin", "auditor"]), BUILT, ANY
)


def made_up(count: int) -> list[Case]:
    """So many roles, servers and tools that Hypothesis thinks of, of which nearly each is another."""
    found: list[Case] = []
    for number in itertools.count():
        if len(found) >= count:
            return found[:count]

        # A few thousand at a time: it keeps all that it has drawn in mind.
        @seed(number)
        @settings(max_examples=min(count - len(found), AT_ONCE), database=None, deadline=None, phases=[Phase.generate])
        @given(st.tuples(ROLE_NAMES, SERVER_NAMES, TOOL_NAMES))
        def draw(case: Case) -> None:
            found.append(case)

        draw()
    raise AssertionError


def noted(file: Path) -> list[str]:
    """The calls that a server has counted."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def attempt(door: AgentMCPService, role: str, server: str, tool: str) -> bool:
    try:
        return not (await door.execute_tool(role, server, tool, {})).is_error
    except SquidbotError:
        return False


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--generated", type=int, default=100_000)
    options = parser.parse_args()
    whitelist = {(role, g.server, g.tool) for role, found in shipped_roles().items() for g in found.grants}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SQUIDBOT_HOME"] = folder
        entries = {}
        for server in ("git", "github", "jira"):
            names = [tool for owner, tool in TOOLS if owner == server]
            script = str(Path(__file__).with_name("counting_server.py"))
            args = [script, str(Path(folder, server)), *names]
            entries[server] = {"command": sys.executable, "args": args, "protocol": "legacy"}
        limits = [{"role": role, "rate": "100000/s", "burst": 1_000_000} for role in SHIPPED]
        document = {"tools": {"mcp_servers": entries}, "limits": limits}
        document["alerts"] = {"rules": {"burst": {"enabled": False}, "refusals": {"enabled": False}}}
        checked = check_document(Document(document, {}), source=None)
        tried, wrong, allowed = 0, [], Counter[tuple[str, str]]()
        async with create_agent_service(checked) as door:
            for role in SHIPPED:
                await door.initialize_agent_tools(role)
            cases = [(role, *name) for role in SHIPPED for server, tool in TOOLS for name in spellings(server, tool)]
            spelt = len(cases)
            cases += made_up(options.generated)
            for start in range(0, len(cases), 256):
                batch = cases[start : start + 256]
                for case, passed in zip(
                    batch, await asyncio.gather(*(attempt(door, *case) for case in batch)), strict=True
                ):
                    tried += 1
                    if passed != (case in whitelist):
                        wrong.append(case)
                    if passed:
                        allowed[case[1], case[2]] += 1
        counted = Counter((server, tool) for server in entries for tool in noted(Path(folder, server)))
    print(f"{spelt:,} spellings, {len(set(cases[spelt:])):,} different names that Hypothesis made up")
    print(f"tried {tried:,}, allowed {allowed.total():,}, counted at the servers {counted.total():,}")
    print(f"decided otherwise than the whitelist: {len(wrong)} {wrong[:3]}")
    print(f"servers saw exactly what was allowed: {counted == allowed}")
    return 1 if wrong or counted != allowed or not allowed else 0


if __name__ == "__main__":
    logger.remove()
    assert MCPToolMapper().roles.keys() == SHIPPED.keys()
    sys.exit(asyncio.run(main()))
