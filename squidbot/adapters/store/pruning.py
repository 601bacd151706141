"""Takes the oldest rows away, in a way that the chain itself attests."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection

from squidbot.adapters.store.chain import INTENTS, RECORDS
from squidbot.adapters.store.database import Database, fetch, run, scalar
from squidbot.adapters.store.ledger import Ledger, hash_at
from squidbot.adapters.store.recovery import now
from squidbot.core.domain.audit import ToolExecution
from squidbot.core.domain.callers import OPERATOR, Caller

_SLICE = 1000
"""Rows that one transaction takes away: calls wait no longer than for that."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How far a chain is pruned: up to the row with this sequence and hash."""

    chain: str
    base: int
    sequence: int
    hash: str


def plan(database: Database, before: str) -> list[Cut]:
    """Per chain the longest beginning in which every row is older than `before`, and no call is open."""
    with database.connect() as connection:
        chains = fetch(connection, "SELECT chain, base_sequence, sequence FROM audit_chains ORDER BY chain")
        cuts = (_cut(connection, chain, base, head, before) for chain, base, head in chains)
        return [cut for cut in cuts if cut is not None]


def _cut(connection: Connection, chain: str, base: int, head: int, before: str) -> Cut | None:
    last = head
    for table in (RECORDS, INTENTS):
        # Walks the rows in order and stops at the first: no more of them than will go.
        younger = f"SELECT MIN(sequence) FROM {table} WHERE chain = ? AND timestamp >= ?"  # noqa: S608
        first = scalar(connection, younger, (chain, before))
        last = last if first is None else min(last, first - 1)
    is_open = (
        f"SELECT MIN(i.sequence) FROM {INTENTS} i WHERE i.chain = ? AND i.sequence <= ?"  # noqa: S608
        f" AND NOT EXISTS (SELECT 1 FROM {RECORDS} l WHERE l.id = i.id)"
    )
    first = scalar(connection, is_open, (chain, last))
    last = last if first is None else first - 1
    if last <= base:
        return None
    digest = hash_at(connection, chain, last)
    return None if digest is None else Cut(chain, base, last, digest)


def steps(database: Database, cut: Cut, before: str, caller: Caller | None) -> list[Callable[[Ledger], Any]]:
    """The transactions that carry a cut out: the first attests it, the others take the rows away, oldest first.

    Between any two of them the chain verifies, so a pruning that is interrupted is merely shorter.
    """
    ends = [*range(cut.base + _SLICE, cut.sequence, _SLICE), cut.sequence]
    return [partial(_attest, database, cut, before, caller), *(partial(_take, cut.chain, end) for end in ends)]


def _attest(database: Database, cut: Cut, before: str, caller: Caller | None, ledger: Ledger) -> None:
    arguments = {
        "before": before,
        "chain": cut.chain,
        "records": cut.sequence - cut.base,
        "sequence": cut.sequence,
        "hash": cut.hash,
    }
    record = ToolExecution(
        id=secrets.token_hex(16),
        timestamp=now(),
        squad_member_id=caller.member if caller else None,
        role=caller.role if caller else OPERATOR,
        server="squidbot",
        tool="audit_prune",
        arguments=json.dumps(arguments),
        result=None,
        success=True,
        error_message=None,
        origin=caller.origin if caller else "system",
        outcome="ok",
        duration=0.0,
        revision="",
        kind="prune",
    )
    if cut.chain == database.chain:
        ledger.add_record(record)
    else:
        # The attestation belongs into the chain that is cut, whoever cuts it.
        other = Ledger(ledger.connection, database, cut.chain)
        other.add_record(record)
        other.flush()


def _take(chain: str, end: int, ledger: Ledger) -> None:
    """Remove the rows up to `end`; the chain then begins after it."""
    connection = ledger.connection
    run(
        connection,
        "UPDATE audit_chains SET base_sequence = ?, base_hash = ? WHERE chain = ? AND base_sequence < ?",
        (end, hash_at(connection, chain, end), chain, end),
    )
    for table in (RECORDS, INTENTS):
        run(connection, f"DELETE FROM {table} WHERE chain = ? AND sequence <= ?", (chain, end))  # noqa: S608
