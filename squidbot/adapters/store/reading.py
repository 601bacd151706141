"""Reads the trail: in pages, each chain in the order of its sequence, several chains by time."""

import heapq
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from squidbot.adapters.store.chain import RECORD_COLUMNS, RECORD_SEQUENCE, RECORDS, clean, record_of
from squidbot.adapters.store.database import Database, fetch, scalar
from squidbot.adapters.store.recovery import OPEN_INTENTS
from squidbot.core.domain.audit import RecordFilter, ToolExecution, Usage

PAGE = 500
_SELECT = f"SELECT {', '.join(RECORD_COLUMNS)} FROM {RECORDS}"  # noqa: S608
_ESCAPE = "!"
_OUR_ID = re.compile("[0-9a-f]+")
_WILD = frozenset("*?[")
_FAR = 20_000
"""Rows that are walked through rather than asked for by name: that is soon done."""
_MOST_NAMES = 500
"""How many names are looked at for those that a glob means: whoever is refused may have asked for any."""
_MOST_MEANT = 16


def records(database: Database, wanted: RecordFilter, newest: int | None) -> Iterator[ToolExecution]:
    """Matching records, oldest first; read as they are asked for."""
    with database.connect() as connection:
        chains = [row[0] for row in fetch(connection, "SELECT chain FROM audit_chains ORDER BY chain")]
    if newest is None:
        streams = (_stream(database, wanted, chain) for chain in chains)
        yield from heapq.merge(*streams, key=_time)
    else:
        backwards = (_stream(database, wanted, chain, descending=True, page=min(newest, PAGE)) for chain in chains)
        yield from reversed(list(islice(heapq.merge(*backwards, key=_time, reverse=True), newest)))


def page(
    database: Database, wanted: RecordFilter, newest: int, before: Mapping[str, int] | None
) -> tuple[list[ToolExecution], dict[str, int] | None]:
    """Matching records, newest first, and how far each chain was read, None at the end.

    Whoever goes on from there misses nothing and sees nothing twice, whatever is written meanwhile.
    """
    places = heads(database) if before is None else {chain: before.get(chain, 0) for chain in heads(database)}
    streams = (
        _stream(database, wanted, chain, descending=True, up_to=place, page=min(newest + 1, PAGE))
        for chain, place in places.items()
    )
    merged = heapq.merge(*streams, key=_time, reverse=True)
    found = []
    for record in islice(merged, newest):
        found.append(record)
        places[record.chain] = record.sequence - 1
    return found, places if next(merged, None) is not None else None


def later(database: Database, wanted: RecordFilter, after: dict[str, int]) -> list[ToolExecution]:
    """Matching records past the sequence that `after` has of each chain; `after` is moved on."""
    found: list[ToolExecution] = []
    for chain, sequence in heads(database).items():
        begin = after.get(chain, 0)
        if sequence > begin:
            found += _stream(database, wanted, chain, after=begin, up_to=sequence)
            after[chain] = sequence
    return sorted(found, key=_time)


def heads(database: Database) -> dict[str, int]:
    """How far every chain has come."""
    with database.connect() as connection:
        return {row[0]: row[1] for row in fetch(connection, "SELECT chain, sequence FROM audit_chains")}


def find(database: Database, name: str) -> ToolExecution | None:
    """The record with this id."""
    with database.connect() as connection:
        found = fetch(connection, f"{_SELECT} WHERE id = ?", (clean(name),))
    return record_of(found[0]) if found else None


def find_by_beginning(database: Database, beginning: str) -> ToolExecution | None:
    """The one record whose id begins so; none if there are several."""
    wanted = clean(beginning)
    condition, parameters = "SUBSTR(id, 1, ?) = ?", [len(wanted), wanted]
    if _OUR_ID.fullmatch(wanted):
        # By the index: digits come before letters wherever, and no digit is behind `f`.
        condition, parameters = f"{condition} AND id >= ? AND id < ?", [*parameters, wanted, f"{wanted}g"]
    with database.connect() as connection:
        found = fetch(connection, f"{_SELECT} WHERE {condition} LIMIT 2", parameters)
    return record_of(found[0]) if len(found) == 1 else None


def usage(database: Database, wanted: RecordFilter) -> list[Usage]:
    """What each role made of each tool; prompts, grants and the like are not counted unless asked for by kind."""
    if wanted.kind is None:
        wanted = _calls_of(wanted)
    condition, parameters = where(wanted)
    query = (
        "SELECT role, server, tool, COUNT(*),"  # noqa: S608
        " SUM(CASE WHEN outcome IN ('tool_error', 'server_error', 'timeout', 'unknown') THEN 1 ELSE 0 END),"
        " SUM(CASE WHEN outcome IN ('refused', 'limited') THEN 1 ELSE 0 END), AVG(duration), MAX(duration)"
        f" FROM {RECORDS} WHERE {condition} GROUP BY role, server, tool ORDER BY role, server, tool"
    )
    matches = matcher(wanted)
    with database.connect() as connection:
        rows = fetch(connection, query, parameters)
    return [
        Usage(row[0], row[1], row[2], int(row[3]), int(row[4]), int(row[5]), float(row[6]), float(row[7]))
        for row in rows
        if matches(row[0], row[1], row[2])
    ]


def open_intents(database: Database) -> int:
    """How many calls are under way, or were when their squidbot ended."""
    query = f"SELECT COUNT(*) {OPEN_INTENTS}"
    with database.connect() as connection:
        owners = fetch(connection, "SELECT chain, since, owner FROM audit_owners")
        return sum(int(scalar(connection, query, tuple(owner))) for owner in owners)


def _stream(
    database: Database,
    wanted: RecordFilter,
    chain: str,
    *,
    descending: bool = False,
    after: int = 0,
    up_to: int | None = None,
    page: int = PAGE,
) -> Iterator[ToolExecution]:
    """One chain's matching records, a page at a time."""
    with database.connect() as connection:
        low, high = _bounds(connection, database, wanted, chain)
        low, high = max(low, after), high if up_to is None else min(high, up_to)
        each = _each_name(connection, database, wanted) if high - low > _FAR else None
    streams = (
        _walk(database, part, chain, low=low, high=high, descending=descending, page=page)
        for part in ([wanted] if each is None else each)
    )
    yield from heapq.merge(*streams, key=_sequence, reverse=descending)


def _walk(
    database: Database, wanted: RecordFilter, chain: str, *, low: int, high: int, descending: bool, page: int
) -> Iterator[ToolExecution]:
    """The matching records between two sequences."""
    condition, parameters = where(wanted)
    matches = matcher(wanted)
    direction = "DESC" if descending else "ASC"
    query = (
        f"{_SELECT}{_index(database, wanted)} WHERE chain = ? AND sequence > ? AND sequence <= ? AND {condition}"
        f" ORDER BY sequence {direction} LIMIT {page}"
    )
    while low < high:
        with database.connect() as connection:
            rows = fetch(connection, query, (chain, low, high, *parameters))
        yield from (record_of(row) for row in rows if matches(row[3], row[4], row[5]))
        if len(rows) < page:
            return
        if descending:
            high = rows[-1][RECORD_SEQUENCE] - 1
        else:
            low = rows[-1][RECORD_SEQUENCE]


def _each_name(connection: Connection, database: Database, wanted: RecordFilter) -> list[RecordFilter] | None:
    """The same once for each name that a glob means, so that an index finds what is rare, and nobody looks for what there is not.

    None where an index is used already, where there is no glob, and where there are too many names.
    """
    if _indexed(wanted) is not None:
        return None
    globs = (("tool", wanted.tool), ("role", wanted.role), ("server", wanted.server))
    column, glob = next(((name, glob) for name, glob in globs if glob not in (None, "*")), ("", None))
    if glob is None:
        return None
    names: list[str] = []
    name = scalar(connection, f"SELECT MIN({column}) FROM {RECORDS}{database.using(f'logs_{column}')}")  # noqa: S608
    further = f"SELECT MIN({column}) FROM {RECORDS}{database.using(f'logs_{column}')} WHERE {column} > ?"  # noqa: S608
    for _ in range(_MOST_NAMES):
        if name is None:
            break
        if fnmatchcase(name, clean(glob)):
            names.append(name)
        name = scalar(connection, further, (name,))
    if name is not None or len(names) > _MOST_MEANT or not all(map(_WILD.isdisjoint, names)):
        return None
    changes: list[dict[str, Any]] = [{column: each} for each in names]
    return [replace(wanted, **change) for change in changes]


def _indexed(wanted: RecordFilter) -> str | None:
    """The index that leaves the fewest rows to look at, where there is one for what is wanted."""
    if wanted.outcome not in (None, "ok"):
        return "logs_outcome"
    if wanted.kind not in (None, "call"):
        return "logs_kind"
    exact = (("tool", wanted.tool), ("role", wanted.role), ("server", wanted.server))
    return next((f"logs_{name}" for name, glob in exact if glob is not None and _WILD.isdisjoint(glob)), None)


def _index(database: Database, wanted: RecordFilter) -> str:
    found = _indexed(wanted)
    return database.using(found) if found else ""


def _bounds(connection: Connection, database: Database, wanted: RecordFilter, chain: str) -> tuple[int, int]:
    """Between which sequences the wanted times are, so that nobody walks there row by row."""
    if wanted.since is None and wanted.until is None:
        return 0, scalar(connection, "SELECT sequence FROM audit_chains WHERE chain = ?", (chain,)) or 0
    times = [(sign, moment) for sign, moment in ((">=", wanted.since), ("<", wanted.until)) if moment is not None]
    # Both ends in one question about the index alone: as much work as there are records in that time, not after or before it.
    query = (
        f"SELECT MIN(sequence), MAX(sequence) FROM {RECORDS}{database.using('logs_timestamp')} WHERE chain = ?"  # noqa: S608
        + "".join(f" AND timestamp {sign} ?" for sign, _ in times)
    )
    ((first, last),) = fetch(connection, query, (chain, *(moment for _, moment in times)))
    return (0, 0) if first is None else (first - 1, last)


def where(wanted: RecordFilter) -> tuple[str, list[str]]:
    """A condition that no wanted record fails; globs that SQL cannot say let through more."""
    parts: list[str] = ["1 = 1"]
    parameters: list[str] = []
    for column, glob in (("role", wanted.role), ("server", wanted.server), ("tool", wanted.tool)):
        if glob is not None and glob != "*":
            exact = _WILD.isdisjoint(glob)
            parts.append(f"{column} = ?" if exact else f"{column} LIKE ? ESCAPE '{_ESCAPE}'")
            parameters.append(clean(glob) if exact else _like(clean(glob)))
    if wanted.outcome not in (None, "ok"):
        # Said so that the index on failures alone can be used; so it is with kinds.
        parts.append("outcome <> 'ok'")
    if wanted.kind not in (None, "call"):
        parts.append("kind <> 'call'")
    plain = (("outcome =", wanted.outcome), ("kind =", wanted.kind))
    times = (("timestamp >=", wanted.since), ("timestamp <", wanted.until))
    for condition, value in (*plain, *times):
        if value is not None:
            parts.append(f"{condition} ?")
            parameters.append(value)
    return " AND ".join(parts), parameters


def _like(glob: str) -> str:
    """A pattern for LIKE that matches at least what the glob matches."""
    pattern = ""
    place = 0
    while place < len(glob):
        character = glob[place]
        place += 1
        match character:
            case "*":
                pattern += "%"
            case "?":
                pattern += "_"
            case "[" if "]" in glob[place + 1 :]:
                # The end of the set: its first member may itself be a bracket, after `!` as well.
                begin = place + 1 if glob[place] != "!" else place + 2
                end = glob.find("]", begin)
                if end < 0:
                    pattern += "["
                else:
                    pattern += "_"
                    place = end + 1
            case "%" | "_" | "!":
                pattern += _ESCAPE + character
            case _:
                pattern += character
    return pattern


def matcher(wanted: RecordFilter) -> Callable[[str, str, str], bool]:
    """Whether role, server and tool are as wanted, to the letter."""
    globs = [
        (place, clean(glob))
        for place, glob in enumerate((wanted.role, wanted.server, wanted.tool))
        if glob is not None and glob != "*"
    ]

    def matches(*names: str) -> bool:
        return all(fnmatchcase(names[place], glob) for place, glob in globs)

    return matches


def _calls_of(wanted: RecordFilter) -> RecordFilter:
    return RecordFilter(
        role=wanted.role,
        server=wanted.server,
        tool=wanted.tool,
        outcome=wanted.outcome,
        kind="call",
        since=wanted.since,
        until=wanted.until,
    )


def _time(record: ToolExecution) -> str:
    return record.timestamp


def _sequence(record: ToolExecution) -> int:
    return record.sequence
