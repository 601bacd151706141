"""Reading lines and editing text: exact, bounded, and honest about what was left out."""

import io
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.servers.filesystem.editing import replace_exactly, unified_diff
from squidbot.servers.filesystem.reading import Lines, kind_of, mime_type, read_lines
from squidbot.servers.refusal import Refused

pytestmark = pytest.mark.requirement("F-04")

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("path", "head", "kind"),
    [
        ("a.txt", b"text", ("text", "text/plain")),
        ("a.py", b"", ("text", "text/x-python")),
        ("a", b"caf\xc3\xa9"[:4], ("text", "text/plain")),
        ("latin.txt", b"caf\xe9", ("text", "text/plain")),
        ("a.png", PNG, ("image", "image/png")),
        ("a.jpg", b"\xff\xd8\xff\xe1no zero", ("image", "image/jpeg")),
        ("a.wav", b"RIFF\0\0", ("audio", "audio/x-wav")),
        ("a.svg", b"<svg/>", ("text", "image/svg+xml")),
        ("a.png", b"not a picture", ("text", "image/png")),
        ("a.zip", b"PK\3\4\0", ("binary", "application/zip")),
        ("a.tar.gz", b"\x1f\x8b\0", ("binary", "application/octet-stream")),
        ("a", b"\0", ("binary", "application/octet-stream")),
    ],
)
def test_a_file_is_what_its_bytes_and_its_name_say(path: str, head: bytes, kind: tuple[str, str]) -> None:
    """A picture as text is rubbish to a model, and a text as bytes is closed to it."""
    assert kind_of(path, head) == kind


def test_a_compressed_file_has_not_the_type_of_what_is_in_it() -> None:
    """A .txt.gz is no text."""
    assert mime_type("a.txt.gz") is None
    assert mime_type("a.txt") == "text/plain"


@given(st.binary(max_size=200), st.integers(1, 20), st.integers(1, 20), st.integers(5, 60))
def test_reading_on_from_where_it_stopped_gives_every_line_once(
    data: bytes, offset: int, limit: int, size: int
) -> None:
    """A file that is read in parts must be the same file."""
    lines = data.split(b"\n")
    lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    expected = b"".join(line[:size] for line in lines[offset - 1 :]).decode("utf-8", "replace")
    got = ""
    following: int | None = offset
    while following:
        part = read_lines(io.BytesIO(data), offset=following, limit=limit, size=size)
        if part is None:
            assert offset > max(len(lines), 1)
            return
        assert part.first == following
        assert len(part.text) <= size
        got += part.text
        following = part.following
    if all(line[:size].isascii() for line in lines):
        assert got == expected


def test_an_empty_file_has_no_lines_and_is_no_error() -> None:
    """A new file is empty, and reading it is a fair question."""
    assert read_lines(io.BytesIO(b""), offset=1, limit=9, size=9) == Lines("", 1, 0, None, None)


def test_what_is_not_as_in_the_file_is_said() -> None:
    """A model that does not know of a cut or a replaced byte edits what is not there."""
    part = read_lines(io.BytesIO(b"caf\xe9 " + b"x" * 50 + b"\nnext\n"), offset=1, limit=1, size=10)
    assert part
    assert part.note == "bytes that are no UTF-8 are shown as \ufffd; line 1 is longer than 10 bytes and cut"
    assert part.following == 2


def test_a_line_of_just_the_largest_size_is_whole() -> None:
    """The bound itself is allowed."""
    for data in (b"x" * 10, b"x" * 9 + b"\n"):
        part = read_lines(io.BytesIO(data), offset=1, limit=5, size=10)
        assert part == Lines(data.decode(), 1, 1, None, None)


def test_a_text_is_replaced_only_where_it_is_meant() -> None:
    """The wrong one of two places changed is worse than none."""
    assert replace_exactly("a b c", "b", "x", every=False) == ("a x c", 1)
    assert replace_exactly("b b", "b", "x", every=True) == ("x x", 2)
    with pytest.raises(Refused, match="is in the file 2 times: add lines around it"):
        replace_exactly("b b", "b", "x", every=False)


@pytest.mark.parametrize(
    ("text", "old", "why"),
    [
        ("def one():\n    pass\n", "def once():", r"the nearest line is 1: 'def one\(\):'"),
        ("one\r\ntwo\r\n", "one\ntwo", "its lines end in CR LF"),
        ("one\n", "something else", "read_file shows what is there"),
        ("one\n", "\n\n", "read_file shows what is there"),
        ("", "one", "read_file shows what is there"),
    ],
)
def test_a_text_that_is_not_there_is_answered_with_what_is(text: str, old: str, why: str) -> None:
    """The reason decides what the model tries next."""
    with pytest.raises(Refused, match=f"^old_text is not in the file: {why}"):
        replace_exactly(text, old, "new", every=False)


@given(
    st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\x0c\n", "\n"]), max_size=30).map("".join),
    st.lists(st.sampled_from(["a\n", "b\n", "x\n", "\n"]), max_size=30).map("".join),
    st.sampled_from(["", "a", "end"]),
)
def test_a_diff_numbers_and_shows_the_lines_as_they_are(before: str, after: str, end: str) -> None:
    """Line numbers that are off send the reader to the wrong place."""
    before, after = before + end, after + end
    diff = unified_diff("f", before, after)
    old, new = (list(io.StringIO(text, newline="\n")) for text in (before, after))
    if before == after:
        assert diff == ""
        return
    numbers = [0, 0]
    for line in list(io.StringIO(diff, newline="\n"))[2:]:
        if line.startswith("@@"):
            starts = [part.lstrip("+-").split(",") for part in line.split()[1:3]]
            numbers = [int(start[0]) - (start[1:] != ["0"]) for start in starts]
        elif not line.startswith("\\"):
            if line[0] in " -":
                assert old[numbers[0]].rstrip("\n") == line[1:].rstrip("\n")
                numbers[0] += 1
            if line[0] in " +":
                assert new[numbers[1]].rstrip("\n") == line[1:].rstrip("\n")
                numbers[1] += 1


def test_a_diff_is_one_that_patch_understands(tmp_path: Path) -> None:
    """A diff that no tool reads is only decoration."""
    before = "".join(f"line {number}\n" for number in range(1, 101)) + "end"
    after = before.replace("line 50\n", "fifty\nand more\n").replace("end", "the end")
    (tmp_path / "f").write_text(before)
    done = subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"],
        cwd=tmp_path,
        input=unified_diff("f", before, after),
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert (tmp_path / "f").read_text() == after


def test_a_change_of_too_much_is_told_by_its_size_at_once() -> None:
    """Comparing two long texts line by line can take minutes."""
    before = "a\nb\n" * 20_000
    assert "too long to show" in unified_diff("f", before, before.replace("a", "c"))
    long = unified_diff("f", "x\n", "y" * 100_000 + "\n")
    assert len(long) < 60_000
    assert "(cut: the diff has" in long
