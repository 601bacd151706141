"""Starts the jira server: `python -m squidbot.servers.jira [--http PORT]`."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal

from squidbot.servers import program

if TYPE_CHECKING:
    from mcp.server import Server

_NEEDED = {
    "JIRA_URL": "the address of Jira, such as https://example.atlassian.net",
    "JIRA_USERNAME": "the account's mail address",
    "JIRA_API_TOKEN": "a token of that account (or, instead of both, JIRA_PERSONAL_TOKEN of a data center)",
}


def main() -> int:
    """Serve Jira to one account until the client is gone or a signal comes."""
    options = program.parser(
        "jira",
        "An MCP server for Jira at JIRA_URL, for JIRA_USERNAME with JIRA_API_TOKEN, or for JIRA_PERSONAL_TOKEN.",
        "--http 8080",
    ).parse_args()
    personal = program.token("jira", "JIRA_PERSONAL_TOKEN", os.environ.get("JIRA_PERSONAL_TOKEN", "").strip())
    known = program.variables("jira", {"JIRA_URL": _NEEDED["JIRA_URL"]} if personal else _NEEDED)
    url = program.address("jira", "JIRA_URL", known["JIRA_URL"])
    version = _version()

    @contextlib.asynccontextmanager
    async def build() -> "AsyncIterator[Server[Any]]":
        from squidbot.servers.jira.api import Jira, jira
        from squidbot.servers.jira.catalogue import INSTRUCTIONS, TOOLS
        from squidbot.servers.protocol import build_server
        from squidbot.servers.rest import RestClient

        api = jira(url, username=known.get("JIRA_USERNAME"), token=personal or known["JIRA_API_TOKEN"])
        async with RestClient(api) as client:
            yield build_server("jira", instructions=INSTRUCTIONS, tools=TOOLS, world=Jira(client, version))

    return program.serve("jira", build, http=options.http)


def _version() -> Literal["2", "3"] | None:
    version = os.environ.get("JIRA_API_VERSION", "")
    if version not in {"", "2", "3"}:
        program.cannot_start(
            "jira", f"JIRA_API_VERSION is {version!r}: it may be 3 (cloud) or 2 (data center), or not be set"
        )
    return "2" if version == "2" else "3" if version == "3" else None


if __name__ == "__main__":
    sys.exit(main())
