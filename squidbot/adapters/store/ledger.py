"""One chain within one transaction: gives rows their sequence and hash, and writes them with the new head."""

import functools
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from squidbot.adapters.store.chain import (
    GENESIS,
    INTENT_COLUMNS,
    INTENTS,
    RECORD_COLUMNS,
    RECORDS,
    Row,
    intent_row,
    record_row,
    registry_hash,
)
from squidbot.adapters.store.database import Database, fetch, marks, rolled_back, run, scalar
from squidbot.adapters.store.head import Head
from squidbot.core.domain.audit import Intent, ToolExecution

_AT_ONCE = (128, 64, 32)
"""Rows of one statement; what is left goes in one more. Each is a moment in which a busy loop takes the interpreter away."""
_REGISTRY_LOCK = 0x5351_5549_4443_4841


class Ledger:
    """The end of a chain, locked until the transaction ends: what is added is written by `flush`."""

    def __init__(self, connection: Connection, database: Database, chain: str) -> None:
        self.connection = connection
        self._database = database
        self._chain = chain
        self._records: list[Row] = []
        self._intents: list[Row] = []
        self.sequence, self.hash, self.first_hash = self._lock()
        self._registered = bool(self.first_hash)

    def add_record(self, record: ToolExecution) -> int:
        """Put a closed record at the end; its sequence."""
        row = record_row(record, chain=self._chain, sequence=self.sequence + 1, previous=self.hash)
        self._records.append(row)
        return self._advance(row)

    def add_intent(self, intent: Intent, owner: str) -> int:
        """Put an intent at the end; its sequence."""
        row = intent_row(intent, chain=self._chain, sequence=self.sequence + 1, previous=self.hash, owner=owner)
        self._intents.append(row)
        return self._advance(row)

    def goes_on_from(self, head: Head) -> bool:
        """Whether what was the head once is still in the trail, or was pruned."""
        if (self.sequence, self.hash) == (head.sequence, head.hash):
            return True
        query = "SELECT base_sequence, base_hash FROM audit_chains WHERE chain = ?"
        base, base_hash = fetch(self.connection, query, (self._chain,))[0]
        if head.sequence <= base:
            return bool(head.sequence < base or head.hash == base_hash)
        return hash_at(self.connection, self._chain, head.sequence) == head.hash

    def flush(self) -> Head | None:
        """Write what was added, and the head with it; None if nothing was."""
        if not self._records and not self._intents:
            return None
        if not self._registered:
            self._register()
        _insert(self.connection, self._database, INTENTS, INTENT_COLUMNS, self._intents)
        _insert(self.connection, self._database, RECORDS, RECORD_COLUMNS, self._records)
        self._records, self._intents = [], []
        run(
            self.connection,
            "UPDATE audit_chains SET sequence = ?, hash = ?, first_hash = ? WHERE chain = ?",
            (self.sequence, self.hash, self.first_hash, self._chain),
        )
        return Head(self._chain, self.sequence, self.hash, self.first_hash)

    def _advance(self, row: Row) -> int:
        self.sequence += 1
        self.hash = row[-1]
        self.first_hash = self.first_hash or self.hash
        return self.sequence

    def _lock(self) -> tuple[int, str, str]:
        query = f"SELECT sequence, hash, first_hash FROM audit_chains WHERE chain = ?{self._database.locking}"  # noqa: S608
        found = fetch(self.connection, query, (self._chain,))
        if not found:
            run(
                self.connection,
                "INSERT INTO audit_chains (chain, sequence, hash, base_sequence, base_hash, first_hash)"
                " VALUES (?, 0, ?, 0, ?, '') ON CONFLICT DO NOTHING",
                (self._chain, GENESIS, GENESIS),
            )
            found = fetch(self.connection, query, (self._chain,))
        sequence, digest, first_hash = found[0]
        return sequence, digest, first_hash

    def _register(self) -> None:
        """Enter the chain into the common registry, itself a chain, so that none can vanish whole."""
        if self._database.locking:
            run(self.connection, "SELECT pg_advisory_xact_lock(?)", (_REGISTRY_LOCK,))
        last = fetch(self.connection, "SELECT sequence, hash FROM audit_registry ORDER BY sequence DESC LIMIT 1")
        sequence, previous = (last[0][0] + 1, last[0][1]) if last else (1, GENESIS)
        digest = registry_hash(previous, sequence=sequence, chain=self._chain, first_hash=self.first_hash)
        run(
            self.connection,
            "INSERT INTO audit_registry (sequence, chain, first_hash, hash) VALUES (?, ?, ?, ?)",
            (sequence, self._chain, self.first_hash, digest),
        )


def append(
    connection: Connection, database: Database, works: Iterable[Intent | ToolExecution], *, behind: Head, owner: str
) -> tuple[Head, dict[str, int]] | None:
    """Commit rows behind a head that we know; the new one, and the sequences of the intents by their ids.

    None if the trail has gone on since: then nothing is written. All that takes time is done before others are locked out.
    """
    records: list[Row] = []
    intents: list[Row] = []
    begun: dict[str, int] = {}
    chain, sequence, digest = behind.chain, behind.sequence, behind.hash
    for work in works:
        sequence += 1
        if isinstance(work, Intent):
            row = intent_row(work, chain=chain, sequence=sequence, previous=digest, owner=owner)
            intents.append(row)
            begun[work.id] = sequence
        else:
            row = record_row(work, chain=chain, sequence=sequence, previous=digest)
            records.append(row)
        digest = row[-1]
    run(connection, database.begin)
    try:
        moved = run(connection, _MOVE_ON, (sequence, digest, chain, behind.sequence, behind.hash, behind.first_hash))
        if moved:
            _insert(connection, database, INTENTS, INTENT_COLUMNS, intents)
            _insert(connection, database, RECORDS, RECORD_COLUMNS, records)
        run(connection, "COMMIT" if moved else "ROLLBACK")
    except BaseException:
        rolled_back(connection)
        raise
    return (Head(chain, sequence, digest, behind.first_hash), begun) if moved else None


_MOVE_ON = (
    "UPDATE audit_chains SET sequence = ?, hash = ? WHERE chain = ? AND sequence = ? AND hash = ? AND first_hash = ?"
)


def hash_at(connection: Connection, chain: str, sequence: int) -> str | None:
    """The hash of the row with this sequence, in whichever table it is."""
    for table in (RECORDS, INTENTS):
        query = f"SELECT hash FROM {table} WHERE chain = ? AND sequence = ?"  # noqa: S608
        found = scalar(connection, query, (chain, sequence))
        if found is not None:
            return str(found)
    return None


def _insert(
    connection: Connection, database: Database, table: str, columns: tuple[str, ...], rows: Sequence[Row]
) -> None:
    begin = 0
    while begin < len(rows):
        left = len(rows) - begin
        count = next((size for size in _AT_ONCE if size <= left), left)
        values = [value for row in rows[begin : begin + count] for value in row]
        run(connection, _insert_sql(database.insert, table, columns, count), values)
        begin += count


@functools.cache
def _insert_sql(insert: str, table: str, columns: tuple[str, ...], count: int) -> str:
    values = ", ".join([marks(len(columns))] * count)
    return f"{insert} INTO {table} ({', '.join(columns)}) VALUES {values}"
