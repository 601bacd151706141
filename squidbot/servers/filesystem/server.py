"""The filesystem server: the tools of the catalogue on one sandbox."""

from typing import Any

from mcp.server import Server

from squidbot.servers import protocol
from squidbot.servers.filesystem.catalogue import TOOLS
from squidbot.servers.filesystem.sandbox import Sandbox

_INSTRUCTIONS = (
    "Files of one folder. Every path is relative to it, such as 'docs/plan.md'; '.' is the folder itself. "
    "Nothing outside can be reached, and symbolic links are not followed."
)


def build_server(sandbox: Sandbox) -> Server[Any]:
    """A server of the sandbox's files."""
    return protocol.build_server("filesystem", instructions=_INSTRUCTIONS, tools=TOOLS, world=sandbox)
