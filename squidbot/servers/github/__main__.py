"""Starts the github server: `python -m squidbot.servers.github [--http PORT]`."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from squidbot.servers import program

if TYPE_CHECKING:
    from mcp.server import Server


def main() -> int:
    """Serve GitHub to the owner of a token until the client is gone or a signal comes."""
    options = program.parser(
        "github",
        "An MCP server for GitHub, with the rights of GITHUB_TOKEN; GITHUB_API_URL names an Enterprise server's API.",
        "--http 8080",
    ).parse_args()
    known = program.variables("github", {"GITHUB_TOKEN": "a token of the account that acts, from its settings"})
    token = program.token("github", "GITHUB_TOKEN", known["GITHUB_TOKEN"])
    url = program.address("github", "GITHUB_API_URL", os.environ.get("GITHUB_API_URL") or "https://api.github.com")

    @contextlib.asynccontextmanager
    async def build() -> "AsyncIterator[Server[Any]]":
        from squidbot.servers.github.api import github
        from squidbot.servers.github.catalogue import INSTRUCTIONS, TOOLS
        from squidbot.servers.protocol import build_server
        from squidbot.servers.rest import RestClient

        async with RestClient(github(url, token)) as client:
            yield build_server("github", instructions=INSTRUCTIONS, tools=TOOLS, world=client)

    return program.serve("github", build, http=options.http)


if __name__ == "__main__":
    sys.exit(main())
