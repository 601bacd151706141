"""Rows of the trail and the hash that ties each to the one before it: SHA-256 over the columns, joined by NUL.

A row is a tuple in the order of its table's columns, the hash last. Both tables are one chain: a sequence number is
given once, to a row of the one or of the other.
"""

from hashlib import sha256
from typing import Any, TypeAlias

from squidbot.core.domain.audit import Intent, ToolExecution

Row: TypeAlias = tuple[Any, ...]

GENESIS = "0" * 64
"""What the first row of a chain has before it."""

RECORDS = "tool_execution_logs"
RECORD_COLUMNS = (
    *("id", "timestamp", "squad_member_id", "role", "server", "tool", "arguments", "result", "success"),
    *("error_message", "sequence", "origin", "outcome", "duration", "revision", "kind", "chain", "hash"),
)
INTENTS = "tool_execution_intents"
INTENT_COLUMNS = (
    *("id", "timestamp", "squad_member_id", "role", "server", "tool", "arguments", "sequence", "origin"),
    *("revision", "kind", "chain", "owner", "hash"),
)
RECORD_SEQUENCE = RECORD_COLUMNS.index("sequence")
INTENT_SEQUENCE = INTENT_COLUMNS.index("sequence")

_CLEAN = {0: "\u2400"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def record_row(record: ToolExecution, *, chain: str, sequence: int, previous: str) -> Row:
    """The row of a closed record at its place in the chain."""
    columns: Row = (
        record.id,
        record.timestamp,
        record.squad_member_id,
        record.role,
        record.server,
        record.tool,
        record.arguments,
        record.result,
        record.success,
        record.error_message,
        sequence,
        record.origin,
        record.outcome,
        float(record.duration),
        record.revision,
        record.kind,
        chain,
    )
    try:
        return (*columns, record_hash(previous, columns))
    except ValueError:
        columns = _clean(columns)
        return (*columns, record_hash(previous, columns))


def intent_row(intent: Intent, *, chain: str, sequence: int, previous: str, owner: str) -> Row:
    """The row of an intent at its place in the chain."""
    columns: Row = (
        intent.id,
        intent.timestamp,
        intent.squad_member_id,
        intent.role,
        intent.server,
        intent.tool,
        intent.arguments,
        sequence,
        intent.origin,
        intent.revision,
        intent.kind,
        chain,
        owner,
    )
    try:
        return (*columns, intent_hash(previous, columns))
    except ValueError:
        columns = _clean(columns)
        return (*columns, intent_hash(previous, columns))


def record_hash(previous: str, row: Row) -> str:
    """The hash of a closed record after `previous`. Raises ValueError or TypeError for what is no row of ours."""
    text = (
        f"{previous}\0record\0{row[0]}\0{row[1]}\0{'' if row[2] is None else '=' + row[2]}\0{row[3]}\0{row[4]}\0{row[5]}"
        f"\0{row[6]}\0{'' if row[7] is None else '=' + row[7]}\0{row[8]:d}\0{'' if row[9] is None else '=' + row[9]}"
        f"\0{row[10]:d}\0{row[11]}\0{row[12]}\0{row[13]!r}\0{row[14]}\0{row[15]}\0{row[16]}"
    )
    # A NUL inside a column would let text wander from one column to the next under the same hash.
    if text.count("\0") != 18:
        raise ValueError("a column contains NUL")
    return sha256(text.encode()).hexdigest()


def intent_hash(previous: str, row: Row) -> str:
    """The hash of an intent after `previous`. Raises ValueError or TypeError for what is no row of ours."""
    text = (
        f"{previous}\0intent\0{row[0]}\0{row[1]}\0{'' if row[2] is None else '=' + row[2]}\0{row[3]}\0{row[4]}\0{row[5]}"
        f"\0{row[6]}\0{row[7]:d}\0{row[8]}\0{row[9]}\0{row[10]}\0{row[11]}\0{row[12]}"
    )
    if text.count("\0") != 14:
        raise ValueError("a column contains NUL")
    return sha256(text.encode()).hexdigest()


def registry_hash(previous: str, *, sequence: int, chain: str, first_hash: str) -> str:
    """The hash of a chain's entry in the registry of chains."""
    return sha256(f"{previous}\0chain\0{sequence}\0{chain}\0{first_hash}".encode()).hexdigest()


def record_of(row: Row) -> ToolExecution:
    """The record that a row holds."""
    return ToolExecution(
        id=row[0],
        timestamp=row[1],
        squad_member_id=row[2],
        role=row[3],
        server=row[4],
        tool=row[5],
        arguments=row[6],
        result=row[7],
        success=bool(row[8]),
        error_message=row[9],
        sequence=row[10],
        origin=row[11],
        outcome=row[12],
        duration=row[13],
        revision=row[14],
        kind=row[15],
        chain=row[16],
    )


def clean(text: str) -> str:
    """`text` without what no database keeps: NUL and halves of characters."""
    return text.translate(_CLEAN)


def _clean(row: Row) -> Row:
    return tuple(clean(value) if isinstance(value, str) else value for value in row)
