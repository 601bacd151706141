"""A new database is made in one go, an older one step by step: the tables must be the same."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from squidbot.adapters.store import migrating
from squidbot.adapters.store.database import Database, fetch, run
from squidbot.adapters.store.store import SQLStore
from tests.fixtures.running import ROOT
from tests.fixtures.trail import Place, all_of, call

pytestmark = pytest.mark.anyio

_SQLITE = ("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name",)
_COLUMNS = """SELECT table_name, column_name, ordinal_position, data_type, character_maximum_length, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"""
_INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname"
_CONSTRAINTS = """SELECT CAST(CAST(conrelid AS regclass) AS text), conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = CAST('public' AS regnamespace) ORDER BY 1, 2"""
_POSTGRES = (_COLUMNS, _INDEXES, _CONSTRAINTS)
_ROWS = ("SELECT version_num FROM alembic_version", "SELECT id, version FROM grants_version")


def _made(place: Place, name: str) -> list[list[Any]]:
    """What a new database holds, made so; on a server, nothing of it stays."""
    database: Database = place.another(name).store()._database
    try:
        if place.url is not None:
            with database.connect() as connection:
                run(connection, "DROP SCHEMA public CASCADE")
                run(connection, "CREATE SCHEMA public")
        migrating.prepare(database)
        with database.connect() as connection:
            return [
                [tuple(row) for row in fetch(connection, query)]
                for query in (*(_SQLITE if place.url is None else _POSTGRES), *_ROWS)
            ]
    finally:
        database.dispose()


async def test_a_new_database_has_the_tables_that_all_steps_would_make(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a new gateway and an old one would work on different tables under the same number."""
    for name in ("at-once", "by-steps"):
        place.another(name).state.mkdir(mode=0o700)
    at_once = _made(place, "at-once")
    monkeypatch.setattr(migrating, "_create", migrating._upgrade)
    assert at_once == _made(place, "by-steps")
    assert len(at_once[0]) > 20


async def test_a_new_database_is_made_without_alembic(tmp_path: Path) -> None:
    """It would stay in the memory of a gateway for good."""
    program = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom squidbot.adapters.store.store import SQLStore\n"
        "async def main():\n    async with SQLStore(None, state=Path(sys.argv[1])):\n        pass\n"
        "asyncio.run(main())\nprint('alembic' in sys.modules)\n"
    )
    ran = await anyio.run_process([sys.executable, "-c", program, str(tmp_path / "state")], cwd=ROOT)
    assert ran.stdout == b"False\n"
    async with SQLStore(None, state=tmp_path / "state") as store:
        record = await call(store)
        assert [one.id for one in await all_of(store)] == [record.id]
        assert (await store.verify()).ok
