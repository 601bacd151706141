"""Globs in SQL: a pattern that the database is asked for never loses what the glob means."""

import contextlib
import sqlite3
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loguru import logger

from squidbot.adapters.store.head import Head, HeadFile
from squidbot.adapters.store.reading import _like

texts = st.text(st.sampled_from("ab_%!*?[]-^"), max_size=8)


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(":memory:")) as opened:
        yield opened


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=texts, glob=texts)
def test_what_a_glob_matches_the_database_finds(connection: sqlite3.Connection, name: str, glob: str) -> None:
    """The exact match comes afterwards, so finding more is harmless, and finding less hides a record."""
    (found,) = connection.execute("SELECT ? LIKE ? ESCAPE '!'", (name, _like(glob))).fetchone()
    assert found or not fnmatchcase(name, glob)


@pytest.mark.parametrize(
    ("glob", "pattern"),
    [
        ("git_*", "git!_%"),
        ("100%", "100!%"),
        ("[ab]c", "_c"),
        ("[!a]", "_"),
        ("[]]", "_"),
        ("[!]", "[!!]"),
        ("a[", "a["),
    ],
)
def test_a_glob_is_narrowed_as_far_as_sql_can_say(glob: str, pattern: str) -> None:
    """Every row that the database leaves out is one that need not be read."""
    assert _like(glob) == pattern


def test_a_head_that_cannot_be_written_is_told_once_and_stops_nobody(tmp_path: Path) -> None:
    """The commit stands; but whoever relies on the head must know that it lags."""
    lines: list[str] = []
    number = logger.add(lines.append, format="{message}")
    try:
        file = HeadFile(tmp_path / "nowhere")
        for sequence in (1, 2):
            file.write(Head("main", sequence, "a" * 64, "b" * 64))
        (tmp_path / "nowhere").mkdir()
        file.write(Head("main", 3, "a" * 64, "b" * 64))
    finally:
        logger.remove(number)
    assert len(lines) == 1
    assert "cannot be written (No such file or directory)" in lines[0]
    assert file.read() == Head("main", 3, "a" * 64, "b" * 64)


def test_a_spoilt_head_is_replaced_by_the_next(tmp_path: Path) -> None:
    """It proves nothing any more, and the next one does."""
    file = HeadFile(tmp_path)
    file.path.write_text("nonsense")
    file.write(Head("main", 3, "a" * 64, "b" * 64))
    assert file.read() == Head("main", 3, "a" * 64, "b" * 64)
