"""Members, tokens and keys in the database: the same on SQLite and on PostgreSQL."""

import asyncio
import sqlite3
from dataclasses import replace

import pytest

from squidbot.adapters.store.migrating import VERSIONS
from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.errors import NotRecorded
from squidbot.core.domain.members import TokenRecord
from tests.fixtures.trail import Place, all_of, beside, call, end

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01")]

TOKEN = TokenRecord(
    id="0123456789ab",
    member="m_ada",
    name="Ada 🦑",
    digest="ab" * 32,
    role="backend_developer",
    right=None,
    created="2026-11-18T10:56:31.123456Z",
    expires=1_900_000_000.5,
)


async def test_a_token_is_read_back_as_it_was_written(place: Place) -> None:
    """What was promised when it was made (whose, for what, until when) is what is checked later."""
    never = replace(TOKEN, id="0123456789ac", role=None, right="auditor", expires=None)
    async with place.store() as store:
        await store.add_token(TOKEN, record=end(kind="grant"))
        await store.add_token(never, record=end(kind="grant"))
    async with place.store() as store:
        assert await store.find_token(TOKEN.id) == TOKEN
        assert await store.tokens() == [TOKEN, never]
        assert await store.find_token("nobody") is None
        assert len(await all_of(store, RecordFilter(kind="grant"))) == 2


async def test_a_token_and_its_record_are_kept_together_or_not_at_all(place: Place) -> None:
    """A token that nobody can see in the record would be a back door."""
    async with place.store() as store:
        known = await call(store)
        with pytest.raises(NotRecorded):
            await store.add_token(TOKEN, record=end(id=known.id, kind="grant"))
        assert await store.tokens() == []
        await store.add_token(TOKEN, record=end(kind="grant"))
        with pytest.raises(NotRecorded):
            await store.add_token(TOKEN, record=end(kind="grant"))
        assert len(await all_of(store, RecordFilter(kind="grant"))) == 1
        assert (await store.verify()).ok


async def test_a_token_is_revoked_once_for_everybody(place: Place) -> None:
    """Whoever takes a token back must be able to rely on it, whichever gateway is asked next."""
    async with place.store() as store, beside(place).store() as other:
        await store.add_token(TOKEN, record=end(kind="grant"))
        assert await other.revoke_token(TOKEN.id, record=end(kind="grant")) is True
        assert await store.revoke_token(TOKEN.id, record=end(kind="grant")) is False
        assert await store.revoke_token("nobody", record=end(kind="grant")) is False
        assert await store.find_token(TOKEN.id) == replace(TOKEN, revoked=True)
        assert len(await all_of(store, RecordFilter(kind="grant"))) == 2


async def test_a_key_is_made_once_and_is_the_same_for_all_gateways(place: Place) -> None:
    """A session that one gateway signs must be good at every other."""
    async with place.store() as store, beside(place).store() as other:
        keys = await asyncio.gather(*(each.key("sessions") for each in (store, other, store, other)))
        assert len(set(keys)) == 1
        assert len(keys[0]) == 32
        assert await store.key("cookies") != keys[0]
    async with place.store() as store:
        assert await store.key("sessions") == keys[0]


async def test_a_database_of_an_older_version_is_brought_up_to_date(sqlite_place: Place) -> None:
    """Whoever updates squidbot keeps the trail, and gets the tables that are new."""
    async with sqlite_place.store() as store:
        before = await call(store)
    file = sqlite_place.state / "audit.db"
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE tokens")
        connection.execute("DROP TABLE gateway_keys")
        connection.execute("DROP INDEX logs_kind")
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    connection.close()
    async with sqlite_place.store() as store:
        await store.add_token(TOKEN, record=end(kind="grant"))
        assert (await all_of(store))[0].id == before.id
        assert (await store.verify()).ok
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == (VERSIONS[-1],)
    connection.close()
