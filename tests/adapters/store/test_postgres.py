"""A PostgreSQL that is not there, hangs up or waits for others is told in words, and got over."""

from pathlib import Path

import psycopg
import pytest

from squidbot.core.domain.errors import NotRecorded
from tests.fixtures.trail import Place, all_of, call, end, intent

pytestmark = pytest.mark.anyio
QUICKLY = 0.1


@pytest.mark.requirement("E-10")
async def test_a_postgres_that_hung_up_is_called_again(postgres_place: Place) -> None:
    """Servers are restarted; a gateway must get over it without one of its own."""
    async with postgres_place.store() as store:
        begun = intent()
        await store.begin(begun)
        assert postgres_place.url is not None
        with psycopg.connect(postgres_place.url, autocommit=True) as session:
            session.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(NotRecorded):
            await store.begin(intent())
        await store.close(end(begun))
        await call(store)
        assert [record.outcome for record in await all_of(store)] == ["ok", "ok"]
        assert (await store.verify()).ok


@pytest.mark.requirement("E-10")
async def test_rows_that_another_session_locks_are_a_refusal_in_time(postgres_place: Place) -> None:
    """Somebody's open transaction must not hang every call."""
    async with postgres_place.store(lock_timeout=QUICKLY) as store:
        await call(store)
        assert postgres_place.url is not None
        with psycopg.connect(postgres_place.url) as session:
            session.execute("SELECT 1 FROM audit_chains FOR UPDATE")
            with pytest.raises(NotRecorded, match="keeps the rows locked"):
                await store.begin(intent())
        await call(store)


async def test_a_postgres_that_is_not_there_is_named_without_its_password(tmp_path: Path) -> None:
    """The message is read by people who have no business with the password."""
    place = Place(f"postgresql://ada:hunter2@/audit?host={tmp_path}", tmp_path / "state")
    with pytest.raises(NotRecorded, match="cannot be reached") as refused:
        async with place.store():
            pass
    assert "postgresql://ada:***@" in str(refused.value.hint)
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"


async def test_a_database_that_does_not_exist_is_told(postgres: str, tmp_path: Path) -> None:
    """A typo in a url, told as one."""
    with pytest.raises(NotRecorded, match='the server refused: database "nowhere" does not exist'):
        async with Place(postgres.replace("/postgres?", "/nowhere?"), tmp_path / "state").store():
            pass
