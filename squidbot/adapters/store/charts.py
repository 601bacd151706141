"""Calls counted and timed by spans of time, for charts."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from squidbot.adapters.store.chain import RECORDS
from squidbot.adapters.store.database import Database, fetch
from squidbot.adapters.store.reading import matcher, where
from squidbot.core.domain.audit import RecordFilter
from squidbot.core.domain.latency import BOUNDS, percentile
from squidbot.core.domain.views import Bucket, Series

_ERRORS = frozenset({"tool_error", "server_error", "timeout", "unknown"})
_REFUSALS = frozenset({"refused", "limited"})
_CLASS = "CASE " + " ".join(f"WHEN duration <= {bound!r} THEN {place}" for place, bound in enumerate(BOUNDS))
_CLASS += f" ELSE {len(BOUNDS)} END"
Counted: TypeAlias = Counter[tuple[str, int]]
"""Calls by outcome and by the class of their duration."""


def series(database: Database, wanted: RecordFilter, *, begin: float, seconds: int, count: int) -> Series:
    """Calls in so many spans of so many seconds; times only of those that reached their server."""
    end = begin + seconds * count
    bounded = replace(wanted, kind=wanted.kind or "call", since=_stamp(begin), until=_stamp(end))
    spans = [Counted() for _ in range(count)]
    for moment, outcome, place, calls in _counted(database, bounded, seconds):
        which = int((moment - begin) // seconds)
        if 0 <= which < count:
            spans[which][outcome, place] += calls
    return Series(seconds, tuple(_bucket(begin + seconds * place, counts) for place, counts in enumerate(spans)))


def _counted(database: Database, wanted: RecordFilter, seconds: int) -> list[tuple[float, str, int, int]]:
    """Counted by the database, in pieces of a second, a minute or an hour: the beginning of a timestamp tells which."""
    length = 13 if seconds % 3_600 == 0 else 16 if seconds % 60 == 0 else 19
    condition, parameters = where(wanted)
    query = (
        f"SELECT substr(timestamp, 1, {length}), outcome, {_CLASS}, role, server, tool, COUNT(*)"  # noqa: S608
        f" FROM {RECORDS} WHERE {condition} GROUP BY 1, 2, 3, 4, 5, 6"
    )
    matches = matcher(wanted)
    with database.connect() as connection:
        rows = fetch(connection, query, parameters)
    return [(_moment(row[0]), row[1], int(row[2]), int(row[6])) for row in rows if matches(row[3], row[4], row[5])]


def _bucket(begin: float, counts: Counted) -> Bucket:
    times: Counter[int] = Counter()
    for (outcome, place), calls in counts.items():
        if outcome not in _REFUSALS:
            times[place] += calls
    return Bucket(
        begin=begin,
        calls=counts.total(),
        errors=sum(calls for (outcome, _), calls in counts.items() if outcome in _ERRORS),
        refused=sum(calls for (outcome, _), calls in counts.items() if outcome in _REFUSALS),
        p50=percentile(times, 0.5),
        p90=percentile(times, 0.9),
        p95=percentile(times, 0.95),
        p99=percentile(times, 0.99),
    )


def _stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(beginning: str) -> float:
    """The time at which a span begins, from as much of its timestamp as tells it: to the hour, minute or second."""
    return datetime.fromisoformat(f"{(beginning + ':00:00')[:19]}+00:00").timestamp()
