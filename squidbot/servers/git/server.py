"""The git server: the tools of the catalogue on some repositories."""

from collections.abc import Sequence
from typing import Any

from mcp.server import Server

from squidbot.servers import protocol
from squidbot.servers.git.catalogue import INSTRUCTIONS, TOOLS
from squidbot.servers.git.command import World
from squidbot.servers.git.repositories import Repository


def build_server(repositories: Sequence[Repository], *, program: str = "git", deadline: float = 60) -> Server[Any]:
    """A server of these repositories; `deadline` is in seconds, for each command of git."""
    world = World.of(repositories, program=program, deadline=deadline)
    return protocol.build_server("git", instructions=INSTRUCTIONS, tools=TOOLS, world=world)
