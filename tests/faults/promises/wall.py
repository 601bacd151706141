"""P8: a role reaches exactly its tools, however their names are spelt, counted at the servers.

python -m tests.faults.promises.wall [--generated 100000]

Nine roles x 27 tools x ten and more spellings, then made-up names, through the guarded door with real servers and a real
record. Prints how many calls were tried, allowed and counted at a server; ends with 1 if one came through that must not.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path

from loguru import logger

from squidbot import AgentMCPService, MCPToolMapper, SquidbotError, create_agent_service
from squidbot.config.documents import Document
from squidbot.config.load import check_document
from squidbot.core.domain.roles import shipped_roles
from squidbot.core.domain.shipped_roles import SHIPPED

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


def made_up(chance: random.Random) -> tuple[str, str, str]:
    """A role, a server and a tool out of pieces of real ones."""
    pieces = [
        "git",
        "github",
        "jira",
        "push",
        "merge",
        "_",
        "*",
        "?",
        "[a-z]",
        "\0",
        "mcp_",
        "GIT",
        "operator",
        "",
        " ",
    ]
    pieces += [tool for _, tool in TOOLS]
    some = ["".join(chance.choices(pieces, k=chance.randint(0, 3))) for _ in range(3)]
    role = chance.choice([*SHIPPED, "operator", "admin", "auditor", some[0]])
    return role, chance.choice(["git", "github", "jira", some[1]]), some[2]


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
        settings = check_document(Document(document, {}), source=None)
        tried, wrong, allowed = 0, [], Counter[tuple[str, str]]()
        async with create_agent_service(settings) as door:
            for role in SHIPPED:
                await door.initialize_agent_tools(role)
            cases = [(role, *name) for role in SHIPPED for server, tool in TOOLS for name in spellings(server, tool)]
            chance = random.Random(8)
            cases += [made_up(chance) for _ in range(options.generated)]
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
    print(f"tried {tried:,}, allowed {allowed.total():,}, counted at the servers {counted.total():,}")
    print(f"decided otherwise than the whitelist: {len(wrong)} {wrong[:3]}")
    print(f"servers saw exactly what was allowed: {counted == allowed}")
    return 1 if wrong or counted != allowed or not allowed else 0


if __name__ == "__main__":
    logger.remove()
    assert MCPToolMapper().roles.keys() == SHIPPED.keys()
    sys.exit(asyncio.run(main()))
