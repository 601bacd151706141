"""`squidbot init`: a first settings file, with comments that teach."""

import os
from pathlib import Path

import click

from squidbot.cli.errors import CommandError
from squidbot.cli.grammar import Command
from squidbot.cli.invocation import Invocation

TEMPLATE = """\
// The settings of squidbot. Comments are allowed. Check this file with: squidbot config check
{
  "tools": {
    // Every MCP server that squidbot connects to, under a name of your choice.
    "mcp_servers": {
      // Ships with squidbot: files in a folder of their own, with no way out of it.
      "filesystem": {},

      // A local program, started and ended by squidbot; write ${NAME} for what is in the environment:
      // "search": {"command": "npx", "args": ["-y", "some-package@1.2.3"], "env": {"API_KEY": "${SEARCH_KEY}"}},

      // A remote server; ws:// and wss:// work too:
      // "docs": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}},
    }
  }
}
"""


@click.command(cls=Command, example="squidbot init\nsquidbot tools list")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def init(call: Invocation, *, force: bool, file: Path | None) -> None:
    """Write a first settings file, squidbot.json, with comments."""
    path = (file or call.config or Path("squidbot.json")).expanduser()
    mode = os.O_TRUNC if force else os.O_EXCL
    try:
        # It may come to hold secrets, so it is its owner's alone from the start.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o600)
    except FileExistsError:
        raise CommandError(
            f"{str(path)!r} is there already, and was left as it is", code="exists", hint="--force overwrites it."
        ) from None
    except OSError as error:
        raise CommandError(f"{str(path)!r} cannot be written: {error.strerror}", code="failed") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(TEMPLATE)
    if call.json:
        call.output.document({"file": str(path)})
    else:
        call.output.write(call.output.clean(f"Wrote {path}."))
        call.output.note("Next: squidbot doctor, then squidbot tools list")
