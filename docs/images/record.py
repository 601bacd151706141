"""Draws docs/images/session.svg: a first session, typed for real on a terminal and kept as it looked.

python docs/images/record.py
"""

import fcntl
import io
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

WIDTH = 104
COMMANDS = (
    "squidbot init",
    "squidbot tools list",
    'squidbot tools call mcp_filesystem_write_file path=plan.md content="1. Begin"',
    "squidbot tools call mcp_filesystem_read_file pth=plan.md limit=0",
)
CONTROL = re.compile(r"(\r\n|\r|\n|\x1b\[\?\d+[hl]|\x1b\[\d*[AK])")


def main() -> None:
    """Type the session in an empty folder, and write the picture."""
    picture = Path(__file__).with_name("session.svg")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory(prefix="squidbot-") as home:
        folder = Path(home, "project")
        folder.mkdir()
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            for line in seen(typed(command, folder=folder, home=home)):
                console.print(Text.from_ansi(line.replace(home, "~")))
    console.print(Text("$", "bold green"))
    svg = console.export_svg(title="squidbot", theme=MONOKAI, code_format=_format(), unique_id="squidbot")
    picture.write_text(svg, "utf-8")


def typed(command: str, *, folder: Path, home: str) -> str:
    """All that a terminal gets to see while `command` runs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    program = Path(sys.executable).with_name("squidbot")
    environment = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    process = subprocess.Popen(
        [program, *shlex.split(command)[1:]], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65_536):
            shown += part
    except OSError:  # how Linux says that the other end is gone
        pass
    os.close(ours)
    process.wait()
    return shown.decode()


def seen(shown: str) -> Iterator[str]:
    """The lines that are left when spinners have come and gone."""
    lines, row = [""], 0
    for part in CONTROL.split(shown):
        if part in ("\r\n", "\n"):
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("A") and part.startswith("\x1b["):
            row -= 1
        elif part.endswith("K") and part.startswith("\x1b["):
            lines[row] = ""
        elif part != "\r" and not part.startswith("\x1b[?"):
            lines[row] += part
    while lines and not lines[-1].strip():
        lines.pop()
    yield from lines


def _format() -> str:
    """The drawing of rich without the fonts that it would fetch from elsewhere."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    return re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


if __name__ == "__main__":
    main()
