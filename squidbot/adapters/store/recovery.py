"""Closes what was begun by somebody who lives no more: nobody will ever know how it ended."""

from collections.abc import Callable
from datetime import UTC, datetime

from loguru import logger
from sqlalchemy import Connection

from squidbot.adapters.store.chain import INTENT_COLUMNS, Row
from squidbot.adapters.store.database import Database, fetch, run, transaction
from squidbot.adapters.store.head import Head
from squidbot.adapters.store.ledger import Ledger
from squidbot.core.domain.audit import Outcome, ToolExecution

_COLUMNS = ", ".join(f"i.{name}" for name in INTENT_COLUMNS)
OPEN_INTENTS = (
    "FROM tool_execution_intents i WHERE i.chain = ? AND i.sequence >= ? AND i.owner = ?"
    " AND NOT EXISTS (SELECT 1 FROM tool_execution_logs l WHERE l.id = i.id)"
)


def now() -> str:
    """The time, as records have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def recover(connection: Connection, database: Database, *, but: str, on_commit: Callable[[Head], None]) -> None:
    """Close the calls of all owners that live no more; `but` is ourselves."""
    for owner, chain, since in fetch(connection, "SELECT owner, chain, since FROM audit_owners"):
        if owner != but and database.claim(connection, owner):
            try:
                with transaction(connection, database.begin):
                    count, head = close_abandoned(connection, database, owner=owner, chain=chain, since=since)
            finally:
                database.release(connection, owner)
            if head is not None:
                on_commit(head)
                logger.warning("{} calls had no end when squidbot ended; they are recorded as unknown", count)


def close_abandoned(
    connection: Connection, database: Database, *, owner: str, chain: str, since: int
) -> tuple[int, Head | None]:
    """Give every open intent of `owner` an end, and forget the owner; how many, and the new head if any."""
    ledger = Ledger(connection, database, chain)
    query = f"SELECT {_COLUMNS} {OPEN_INTENTS} ORDER BY i.sequence"
    rows = fetch(connection, query, (chain, since, owner))
    for row in rows:
        ledger.add_record(end_of(row, "unknown", "squidbot ended before the answer came"))
    run(connection, "DELETE FROM audit_owners WHERE owner = ?", (owner,))
    return len(rows), ledger.flush()


def end_of(intent: Row, outcome: Outcome, why: str) -> ToolExecution:
    """The end of an intent that came to nothing, or to nobody knows what."""
    of = dict(zip(INTENT_COLUMNS, intent, strict=True))
    return ToolExecution(
        id=of["id"],
        timestamp=now(),
        squad_member_id=of["squad_member_id"],
        role=of["role"],
        server=of["server"],
        tool=of["tool"],
        arguments=of["arguments"],
        result=None,
        success=False,
        error_message=why,
        origin=of["origin"],
        outcome=outcome,
        duration=0.0,
        revision=of["revision"],
        kind=of["kind"],
    )
