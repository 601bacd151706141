"""What the guide shows is what happens: its programs are run, its sessions are typed, its links are followed."""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

import squidbot
from tests.architecture.source import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)(?P<target>[^)#\s]+)(?:#[^)]*)?\)|<img src=\"(?P<image>[^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and what the page says comes out of it."""

    page: str
    line: int
    kind: str
    text: str
    output: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """A page's blocks; a `text` block right after a `python` one is its output."""
    text = page.read_text("utf-8")
    found = list(BLOCK.finditer(text))
    for match, following in zip_longest(found, found[1:]):
        follows = (
            following is not None and following["kind"] == "text" and not text[match.end() : following.start()].strip()
        )
        yield Block(
            page=page.relative_to(ROOT).as_posix(),
            line=text.count("\n", 0, match.start()) + 1,
            kind=match["kind"],
            text=match["text"],
            output=following["text"] if following is not None and follows else "",
        )


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Each `$ command` of a session, with the lines below it."""
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output.rstrip("\n")


def agree(shown: str, seen: str) -> bool:
    """Whether a page's output is the real one; `...` stands for what differs from run to run."""
    return doctest.OutputChecker().check_output(shown.strip() + "\n", seen.strip() + "\n", doctest.ELLIPSIS)


ALL = [block for page in PAGES for block in blocks(page)]


@pytest.fixture(autouse=True)
def _fresh_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who follows the guide begins with nothing."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("block", [block for block in ALL if block.kind == "python"], ids=str)
def test_a_program_in_the_guide_does_what_the_page_says(block: Block) -> None:
    """A first example that fails is the last one that is tried."""
    seen = io.StringIO()
    with contextlib.redirect_stdout(seen):
        exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})
    assert agree(block.output, seen.getvalue()), f"{block} shows:\n{block.output}\nbut prints:\n{seen.getvalue()}"


@pytest.mark.deadline(180)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```console" in page.read_text("utf-8")], ids=lambda page: page.name
)
def test_a_session_in_the_guide_looks_like_the_page_says(page: Path) -> None:
    """What people type after us must answer as it answered us."""
    program = str(Path(sys.executable).with_name("squidbot"))
    for block in blocks(page):
        for command, shown in commands(block.text) if block.kind == "console" else ():
            assert command.startswith("squidbot "), f"{block}: only squidbot's own commands are typed here: {command}"
            run = subprocess.run(
                [program, *shlex.split(command)[1:]],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=False,
                env={**os.environ, "COLUMNS": "100"},
            )
            assert agree(shown, run.stdout), f"{block}: {command}\nis shown as:\n{shown}\nbut gives:\n{run.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    """A guide with a dead link sends people away."""
    targets = [match["target"] or match["image"] for match in LINK.finditer(page.read_text("utf-8"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_public_name_is_shown_in_use() -> None:
    """A name that no page shows is a name that nobody finds."""
    shown = "".join(block.text for block in ALL if block.kind == "python" and block.page == "docs/library.md")
    assert [name for name in squidbot.__all__ if not re.search(rf"\b{re.escape(name)}\b", shown)] == []
