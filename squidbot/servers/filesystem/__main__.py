"""Starts the filesystem server: `python -m squidbot.servers.filesystem [FOLDER] [--http PORT]`."""

import contextlib
import os
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from squidbot.servers import program
from squidbot.servers.filesystem.sandbox import Sandbox

if TYPE_CHECKING:
    from mcp.server import Server


def main() -> int:
    """Serve one folder until the client is gone or a signal comes."""
    parser = program.parser("filesystem", "An MCP server for the files of one folder.", "./notes --http 8080")
    parser.add_argument("folder", nargs="?", type=Path, help="the folder; default: one in squidbot's state folder")
    options = parser.parse_args()
    sandbox = _open(options.folder)

    def build() -> "AbstractAsyncContextManager[Server[Any]]":
        from squidbot.servers.filesystem.server import build_server

        return contextlib.nullcontext(build_server(sandbox))

    try:
        return program.serve("filesystem", build, http=options.http)
    finally:
        sandbox.closing.set()


def _open(folder: Path | None) -> Sandbox:
    try:
        return Sandbox.open(folder or _default_folder())
    except OSError as error:
        hint = ["Name a folder that exists; without a name, one is made for you."] if folder else []
        program.cannot_start("filesystem", f"cannot use the folder {error.filename!r}: {error.strerror}", *hint)


def _default_folder() -> Path:
    """`workspace` in the state folder, made for its owner alone."""
    home = os.environ.get("SQUIDBOT_HOME")
    if home:
        state = Path(home).expanduser().absolute()
    else:
        import platformdirs

        state = platformdirs.user_state_path("squidbot")
    folder = state / "workspace"
    for missing in [path for path in (folder, *folder.parents) if not path.exists()][::-1]:
        missing.mkdir(mode=0o700, exist_ok=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
