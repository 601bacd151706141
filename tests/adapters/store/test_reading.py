"""Globs in SQL: a pattern that the database is asked for never loses what the glob means."""

import contextlib
import sqlite3
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loguru import logger
from sqlalchemy import Connection

from squidbot.adapters.store import reading
from squidbot.adapters.store.database import fetch
from squidbot.adapters.store.head import Head, HeadFile
from squidbot.adapters.store.reading import _like
from squidbot.adapters.store.store import SQLStore
from squidbot.core.domain.audit import RecordFilter
from tests.fixtures.trail import Place, all_of, end

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


@pytest.mark.anyio
@pytest.mark.requirement("E-06")
async def test_what_a_glob_means_is_found_name_by_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a long trail what is rare is found by the index; it must be the same records, in the same order."""
    tools = ["git_push", "git_pull", "git_push", "svn_commit", "git_*", "Git_push", "git_pull", "a%b", "svn_commit"]
    globs = [f"{some}*" for some in ("", "g", "git_p", "svn", "hg", "[gs]", "?it_pu[ls]", "a%")]
    async with place.store() as store:
        for number, tool in enumerate(tools):
            await store.close(end(tool=tool, role=f"role-{number % 2}", timestamp=f"2026-11-{number + 10}T00:00:00.0Z"))
        plain = [await seen(store, RecordFilter(tool=glob, role=role)) for glob in globs for role in (None, "role-[1]")]
        monkeypatch.setattr(reading, "_FAR", 0)
        for meant, looked_at in ((16, 500), (2, 500), (16, 3)):
            monkeypatch.setattr(reading, "_MOST_MEANT", meant)
            monkeypatch.setattr(reading, "_MOST_NAMES", looked_at)
            assert plain == [
                await seen(store, RecordFilter(tool=glob, role=role)) for glob in globs for role in (None, "role-[1]")
            ]
        assert plain[globs.index("svn*") * 2] == ([4, 9], [9, 4])
        assert plain[globs.index("hg*") * 2] == ([], [])


async def seen(store: SQLStore, wanted: RecordFilter) -> tuple[list[int], list[int]]:
    """The matching records from the first to the last, and the newest first."""
    newest, _ = await store.page(wanted, newest=100)
    return [record.sequence for record in await all_of(store, wanted)], [record.sequence for record in newest]


@pytest.mark.anyio
async def test_what_there_is_not_is_not_looked_for_in_every_row(
    sqlite_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten million records take half a minute to walk through."""
    monkeypatch.setattr(reading, "_FAR", 0)
    async with sqlite_place.store() as store:
        await store.close(end(tool="git_push"))
        asked: list[str] = []

        def noted(connection: Connection, sql: str, *rest: Any) -> list[tuple[Any, ...]]:
            asked.append(sql)
            return fetch(connection, sql, *rest)

        monkeypatch.setattr(reading, "fetch", noted)
        assert (await store.page(RecordFilter(tool="svn*"), newest=50))[0] == []
        assert not [sql for sql in asked if "ORDER BY sequence" in sql]
        assert len((await store.page(RecordFilter(tool="git*"), newest=50))[0]) == 1
        assert [sql for sql in asked if "INDEXED BY logs_tool" in sql and "ORDER BY sequence" in sql]


@pytest.mark.anyio
async def test_what_is_no_call_is_found_by_its_kind(place: Place) -> None:
    """A grant among ten million calls is looked for when something went wrong."""
    async with place.store() as store:
        for kind in ("call", "grant", "call", "prompt"):
            await store.close(end(kind=kind, outcome="refused" if kind == "prompt" else "ok"))
        assert await seen(store, RecordFilter(kind="grant")) == ([2], [2])
        assert await seen(store, RecordFilter(kind="call")) == ([1, 3], [3, 1])
        assert await seen(store, RecordFilter(kind="prompt", outcome="refused", tool="git*")) == ([4], [4])
        if place.url is None:
            with sqlite3.connect(place.state / "audit.db") as connection:
                condition, parameters = reading.where(RecordFilter(kind="grant"))
                query = f"EXPLAIN QUERY PLAN SELECT id FROM tool_execution_logs INDEXED BY logs_kind WHERE {condition}"
                assert "logs_kind" in connection.execute(query, parameters).fetchone()[3]


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
