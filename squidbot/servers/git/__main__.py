"""Starts the git server: `python -m squidbot.servers.git --repository PATH [--repository PATH …] [--http PORT]`."""

import argparse
import contextlib
import math
import shutil
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from squidbot.servers import program
from squidbot.servers.git.repositories import Repository, open_all
from squidbot.servers.refusal import Refused

if TYPE_CHECKING:
    from mcp.server import Server


def main() -> int:
    """Serve some repositories until the client is gone or a signal comes."""
    options = _options()
    repositories = _open(options.repository)
    git = shutil.which("git")
    if git is None:
        program.cannot_start("git", "there is no program 'git' on this machine", "Install git 2.30 or newer.")

    def build() -> "AbstractAsyncContextManager[Server[Any]]":
        from squidbot.servers.git.server import build_server

        return contextlib.nullcontext(build_server(repositories, program=git, deadline=options.deadline))

    return program.serve("git", build, http=options.http)


def _options() -> argparse.Namespace:
    parser = program.parser("git", "An MCP server for git in the repositories that you name.", "--repository ./shop")
    parser.add_argument(
        "--repository", type=Path, action="append", default=[], metavar="PATH", help="a working tree; may be repeated"
    )
    parser.add_argument(
        "--deadline", type=_seconds, default=60.0, metavar="SECONDS", help="for each command of git; default: 60"
    )
    return parser.parse_args()


def _open(paths: list[Path]) -> tuple[Repository, ...]:
    if not paths:
        program.cannot_start("git", "no repository is named", "Name those that may be used: --repository PATH")
    try:
        return open_all(paths)
    except Refused as refusal:
        program.cannot_start("git", str(refusal))


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < math.inf:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")


if __name__ == "__main__":
    sys.exit(main())
