"""What a person or a pipe gets to see of an answer."""

import re
import stat
from pathlib import Path

import pytest

from squidbot.cli.output import Output
from squidbot.cli.results import Answers
from squidbot.core.domain.content import AudioContent, BinaryContent, Content, ImageContent, TextContent
from squidbot.core.domain.shapes import content_json
from squidbot.core.domain.tools import ToolResult

Capture = pytest.CaptureFixture[str]


class Terminal(Output):
    """An output that a person reads, without colours."""

    on_terminal = True
    dressed = False


def show(result: ToolResult, folder: Path, *, output: Output | None = None) -> None:
    Answers(output or Output(as_json=False), folder=folder, name="mcp_x_../y").show_result(result)


def test_piped_text_is_the_text_to_the_letter(folder: Path, capfd: Capture) -> None:
    """What goes into a file or another program must be what the tool said, control characters and all."""
    show(ToolResult(content=(TextContent("a\x1b[0m\u200bb"), TextContent("c\n"))), folder)
    assert capfd.readouterr().out == "a\x1b[0m\u200bb\nc\n"


def test_on_a_terminal_nothing_in_it_plays_with_the_terminal(folder: Path, capfd: Capture) -> None:
    """A tool's answer is somebody else's text: it must not clear the screen or hide words."""
    show(ToolResult(content=(TextContent("a\x1b[2Jb"),)), folder, output=Terminal(as_json=False))
    assert capfd.readouterr().out == "a\\x1b[2Jb\n"


@pytest.mark.requirement("D-03")
@pytest.mark.parametrize(
    ("block", "suffix"),
    [
        (ImageContent(b"\x89PNG", "image/png"), ".png"),
        (AudioContent(b"RIFF", "audio/wav; codecs=1"), ".wav"),
        (BinaryContent("res://x", "embedded", mime_type="application/pdf", data=b"%PDF"), ".pdf"),
        (BinaryContent("res://x", "embedded", data=b"\0\1"), ".bin"),
        (ImageContent(b"?", "image/../../etc"), ".bin"),
    ],
)
def test_what_is_no_text_becomes_a_file_whose_path_is_shown(
    block: Content, suffix: str, folder: Path, capfd: Capture
) -> None:
    """A terminal cannot show it and a person wants to open it."""
    show(ToolResult(content=(block,)), folder / "results")
    match = re.search(r"bytes: (.+)\]$", capfd.readouterr().out)
    assert match
    path = Path(match.group(1))
    assert path.parent == folder / "results"
    assert path.suffix == suffix
    assert path.read_bytes() == block.data  # type: ignore[union-attr]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_two_files_of_one_second_are_two_files(folder: Path) -> None:
    """Nothing that was kept is ever overwritten."""
    show(ToolResult(content=(ImageContent(b"1", "image/png"), ImageContent(b"2", "image/png"))), folder)
    assert sorted(path.read_bytes() for path in folder.iterdir()) == [b"1", b"2"]


@pytest.mark.requirement("D-03")
def test_a_long_text_is_cut_on_a_terminal_and_kept_whole(folder: Path, capfd: Capture) -> None:
    """A million lines would scroll away the question; the whole is a file away."""
    text = "\n".join(f"line {number}" for number in range(20_000))
    show(ToolResult(content=(TextContent(text),)), folder, output=Terminal(as_json=False))
    captured = capfd.readouterr()
    assert len(captured.out) < 25_000
    assert "left out" in captured.out
    assert captured.out.endswith("line 19999\n")
    (kept,) = folder.iterdir()
    assert kept.read_text() == text
    assert str(kept) in captured.err


def test_links_and_embedded_text_are_shown(folder: Path, capfd: Capture) -> None:
    """A link has no bytes to keep; embedded text is text."""
    blocks = (BinaryContent("res://a", "link", name="A"), BinaryContent("res://b", "embedded", text="inside"))
    show(ToolResult(content=blocks), folder)
    assert capfd.readouterr().out == "[link to A: res://a]\ninside\n"


@pytest.mark.parametrize(
    ("words", "structured", "shown"),
    [
        (['{"sum": 3}'], {"sum": 3}, '{\n  "sum": 3\n}\n'),
        (["3"], {"result": 3}, '{\n  "result": 3\n}\n'),
        (["1", "2"], {"result": [1, 2]}, '{\n  "result": [\n    1,\n    2\n  ]\n}\n'),
        ([], {"sum": 3}, '{\n  "sum": 3\n}\n'),
        (["Three."], {"sum": 3}, "Three.\n"),
        (['{"sum": 4}'], {"sum": 3}, '{"sum": 4}\n'),
    ],
)
def test_structured_content_is_shown_once(
    words: list[str], structured: object, shown: str, folder: Path, capfd: Capture
) -> None:
    """Servers say it twice, as JSON in a text too, for clients that know no better."""
    content = tuple(TextContent(text) for text in words)
    show(ToolResult(content=content, structured=structured), folder)
    assert capfd.readouterr().out == shown


@pytest.mark.parametrize(
    ("block", "document"),
    [
        (TextContent("a"), {"type": "text", "text": "a"}),
        (ImageContent(b"\0", "image/png"), {"type": "image", "mime_type": "image/png", "data": "AA=="}),
        (AudioContent(b"\0", "audio/wav"), {"type": "audio", "mime_type": "audio/wav", "data": "AA=="}),
        (
            BinaryContent("r://x", "embedded", data=b"\0"),
            {"type": "binary", "uri": "r://x", "name": None, "mime_type": None, "data": "AA==", "text": None}
            | {"kind": "embedded"},
        ),
        (
            BinaryContent("r://x", "link", name="x", mime_type="text/plain"),
            {"type": "binary", "uri": "r://x", "name": "x", "mime_type": "text/plain", "data": None, "text": None}
            | {"kind": "link"},
        ),
    ],
)
def test_content_has_one_json_shape_per_kind(block: Content, document: object) -> None:
    """Programs rely on these keys."""
    assert content_json(block) == document
