"""Keeps the world's documents: JSON by kind and number, in one SQLite file that outlives a kill -9."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS documents (kind TEXT, id INTEGER, body TEXT NOT NULL, PRIMARY KEY (kind, id))",
    "CREATE TABLE IF NOT EXISTS counters (kind TEXT PRIMARY KEY, last INTEGER NOT NULL)",
)


class Store:
    """Documents by kind and id; each `put` is durable by itself. Whoever uses it holds the world's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None

    def open(self) -> None:
        # Any thread may come, because the world's lock admits one at a time.
        self._database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._run("PRAGMA journal_mode = WAL")
        # Safe from the end of the process; only the end of the machine may cost the last change.
        self._run("PRAGMA synchronous = NORMAL")
        for table in _TABLES:
            self._run(table)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """What happens inside is kept whole or not at all."""
        self._run("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._run("ROLLBACK")
            raise
        self._run("COMMIT")

    def get(self, kind: str, number: int) -> Document | None:
        row = self._run("SELECT body FROM documents WHERE kind = ? AND id = ?", kind, number).fetchone()
        return None if row is None else _document(row[0])

    def all(self, kind: str) -> list[Document]:
        """Every document of a kind, oldest first."""
        rows = self._run("SELECT body FROM documents WHERE kind = ? ORDER BY id", kind)
        return [_document(body) for (body,) in rows]

    def put(self, kind: str, document: Document) -> None:
        """Keep a document under its `id`."""
        self._run("REPLACE INTO documents VALUES (?, ?, ?)", kind, document["id"], json.dumps(document))

    def new_id(self, kind: str, first: int = 1) -> int:
        """A number that no document of this kind has had, deleted ones included."""
        statement = "INSERT INTO counters VALUES (?, ?) ON CONFLICT DO UPDATE SET last = last + 1 RETURNING last"
        return int(self._run(statement, kind, first).fetchall()[0][0])

    def remove(self, kind: str, number: int) -> None:
        self._run("DELETE FROM documents WHERE kind = ? AND id = ?", kind, number)

    def _run(self, statement: str, *values: object) -> sqlite3.Cursor:
        assert self._database is not None, "the store is not open"
        return self._database.execute(statement, values)


def _document(body: str) -> Document:
    document: Document = json.loads(body)
    return document
