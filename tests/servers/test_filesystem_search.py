"""Searching: by name and by text, within bounds, whatever the pattern."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.servers.filesystem.sandbox import Sandbox
from squidbot.servers.filesystem.search import Match, Query, glob_fits, scan, search
from squidbot.servers.refusal import Refused

pytestmark = pytest.mark.requirement("F-04")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "readme.md").write_text("Hello\nworld\n")
    (tmp_path / "src" / "app.py").write_text("import os\nprint('hello')\n")
    (tmp_path / "src" / "deep" / "lib.py").write_text("hello = 1\n")
    (tmp_path / "blob.py").write_bytes(b"hello\0hello")
    return tmp_path


@pytest.fixture
def sandbox(folder: Path) -> Iterator[Sandbox]:
    opened = Sandbox.open(folder)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("*.py", ["blob.py", "src/app.py", "src/deep/lib.py"]),
        ("src/*.py", ["src/app.py"]),
        ("src/**/*.py", ["src/app.py", "src/deep/lib.py"]),
        ("**/lib.*", ["src/deep/lib.py"]),
        ("**/deep", ["src/deep"]),
        ("[rs]*", ["readme.md", "src"]),
        ("*.PY", []),
    ],
)
def test_names_are_found_by_glob(sandbox: Sandbox, glob: str, paths: list[str]) -> None:
    """Globs mean here what they mean everywhere, or a model searches in vain."""
    assert [match.path for match in search(sandbox, Query(glob=glob)).matches] == paths


def test_globs_count_from_the_directory_that_is_searched(sandbox: Sandbox) -> None:
    """The path narrows the search, and the pattern goes on from there."""
    assert [match.path for match in search(sandbox, Query(path="src", glob="deep/*")).matches] == ["src/deep/lib.py"]


@given(st.lists(st.sampled_from("ab"), max_size=12), st.integers(1, 40))
def test_a_glob_of_many_stars_is_quick(names: list[str], stars: int) -> None:
    """Patterns that multiply into each other must not freeze the server."""
    start = time.monotonic()
    assert not glob_fits(tuple(names), "/".join(["**"] * stars) + "/none")
    assert not glob_fits(("a" * 200,), "*a" * stars + "*b")
    assert time.monotonic() - start < 2


@given(st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=5))
def test_a_path_fits_itself_and_the_glob_of_everything(names: list[str]) -> None:
    """A path without special characters is its own pattern."""
    assert glob_fits(tuple(names), "/".join(names))
    assert glob_fits(tuple(names), "**/*")


@pytest.mark.parametrize("regex", [False, True])
def test_lines_are_found_with_their_numbers_and_binary_files_are_passed_over(sandbox: Sandbox, regex: bool) -> None:
    """A line number is what the next call needs."""
    found = search(sandbox, Query(text="hello", regex=regex))
    assert found.matches == (Match("src/app.py", 2, "print('hello')"), Match("src/deep/lib.py", 1, "hello = 1"))
    assert found.cut is None


def test_case_can_be_ignored_and_names_and_text_combined(sandbox: Sandbox) -> None:
    """Both filters together are the usual question."""
    found = search(sandbox, Query(glob="*.md", text="hello", ignore_case=True))
    assert found.matches == (Match("readme.md", 1, "Hello"),)


def test_special_characters_are_themselves_unless_an_expression_is_asked_for(sandbox: Sandbox) -> None:
    """Most searches are for code, which is full of brackets."""
    assert len(search(sandbox, Query(text="print('hello')")).matches) == 1
    assert search(sandbox, Query(text="h.llo")).matches == ()
    assert len(search(sandbox, Query(text="h.llo", regex=True)).matches) == 2


def test_a_search_stops_at_its_limit_and_says_so(sandbox: Sandbox) -> None:
    """An answer that is cut without a word is believed to be whole."""
    found = search(sandbox, Query(glob="*", limit=2))
    assert len(found.matches) == 2
    assert found.cut == "stopped at 2 matches"


def test_a_search_that_takes_too_long_stops_and_says_so(sandbox: Sandbox) -> None:
    """Half an answer in time is worth more than a whole one too late."""
    found = scan(sandbox, Query(text="hello", seconds=0))
    assert found.cut == "stopped after 0 seconds"


@pytest.mark.parametrize("regex", ["(", "a{99999999999}", "(?P<x"])
def test_an_expression_that_is_none_is_refused_with_the_reason(sandbox: Sandbox, regex: str) -> None:
    """The model should mend the expression, or say that it meant the characters."""
    with pytest.raises(Refused, match=r"is no regular expression .*set regex to false"):
        search(sandbox, Query(text=regex, regex=True))


def test_an_expression_that_would_run_for_ever_is_ended_in_time(sandbox: Sandbox, folder: Path) -> None:
    """Nothing inside Python can stop such a match, so the process that runs it is killed."""
    (folder / "trap").write_text("a" * 60 + "!")
    start = time.monotonic()
    with pytest.raises(Refused, match=r"took longer than 0\.5 seconds: make it simpler"):
        search(sandbox, Query(text="(a+)+$", regex=True, seconds=0.5))
    assert time.monotonic() - start < 10


def test_a_process_that_fails_is_not_mistaken_for_a_slow_expression(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model would mend an expression that is right."""
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(RuntimeError, match="the process of a search ended with 1"):
        search(sandbox, Query(text="a", regex=True))


def test_a_search_never_imports_what_lies_in_the_folder(
    sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that writes json.py into the folder must not have it run by the server."""
    (folder / "json.py").write_text("import pathlib; pathlib.Path('imported').touch()")
    monkeypatch.chdir(folder)
    assert len(search(sandbox, Query(text="h[e]llo", regex=True)).matches) == 2
    assert not (folder / "imported").exists()


def test_links_are_not_searched_and_long_lines_are_cut(sandbox: Sandbox, folder: Path) -> None:
    """What cannot be read cannot be found either."""
    (folder / "link").symlink_to(folder / "src")
    (folder / "long").write_text("x" * 50_000 + "needle\nneedle " + "y" * 1_000)
    [match] = search(sandbox, Query(text="needle")).matches
    assert (match.path, match.line, len(match.text or "")) == ("long", 2, 300)


def test_a_file_that_vanishes_during_a_search_is_passed_over(
    sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others work in the folder too, and a search is a glance at something that moves."""
    walk = sandbox.walk

    def vanishing(parts: tuple[str, ...], depth: int) -> Iterator[object]:
        for entry in walk(parts, depth):
            if entry.path == "readme.md":
                (folder / "readme.md").unlink()
            yield entry

    monkeypatch.setattr(sandbox, "walk", vanishing)
    assert "readme.md" not in {match.path for match in scan(sandbox, Query(text="o")).matches}
