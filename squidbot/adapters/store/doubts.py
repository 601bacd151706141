"""What a failed batch left open: ends that are not written yet, and intents of which nobody knows whether they are."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from loguru import logger
from sqlalchemy import Connection

from squidbot.adapters.store.chain import INTENT_COLUMNS, INTENTS, RECORDS
from squidbot.adapters.store.database import fetch, marks
from squidbot.adapters.store.ledger import Ledger
from squidbot.adapters.store.recovery import end_of
from squidbot.core.domain.audit import Intent, ToolExecution

_AT_MOST = 10_000
_AT_ONCE = 500


class Doubts:
    """Remembered in memory, within bounds, until the next batch that succeeds settles them.

    A call whose end could not be written did happen: its end is written late. A call whose intent was refused did not
    happen, but the intent may be on disk all the same (a commit whose answer was lost): then it gets an end that says so.
    """

    def __init__(self) -> None:
        self._ends: dict[str, ToolExecution] = {}
        self._intents: dict[str, Intent] = {}

    def __bool__(self) -> bool:
        return bool(self._ends or self._intents)

    def add(self, works: Iterable[Intent | ToolExecution | Callable[[Ledger], Any] | None]) -> None:
        """Remember what a batch that failed was to write."""
        for work in works:
            if isinstance(work, ToolExecution):
                self._keep(self._ends, work.id, work)
            elif isinstance(work, Intent):
                self._keep(self._intents, work.id, work)

    def settle(self, ledger: Ledger, ending: AbstractSet[str]) -> list[str]:
        """Write what is missing, but what this batch ends anyway; the ids that are settled once it is committed."""
        settled: list[str] = []
        if self:
            ended = _existing(ledger.connection, RECORDS, [*self._ends, *self._intents]) | ending
            for name, record in self._ends.items():
                if name not in ended:
                    ledger.add_record(record)
                settled.append(name)
            begun = _existing(ledger.connection, INTENTS, list(self._intents))
            for name in self._intents:
                if name in begun and name not in ended and name not in self._ends:
                    why = "it was not certain that the call is recorded, so it was not made"
                    ledger.add_record(end_of(_intent(ledger.connection, name), "refused", why))
                settled.append(name)
        return settled

    def forget(self, settled: Sequence[str]) -> None:
        """The transaction that settled them is committed."""
        for name in settled:
            self._ends.pop(name, None)
            self._intents.pop(name, None)

    @staticmethod
    def _keep(kept: dict[str, Any], name: str, value: Any) -> None:
        if len(kept) >= _AT_MOST:
            dropped = next(iter(kept))
            del kept[dropped]
            logger.warning("too many records wait for the audit trail: the end of {!r} is lost", dropped)
        kept[name] = value


def recorded(connection: Connection, works: Iterable[object]) -> set[tuple[type, str]]:
    """Which of these the trail has already."""
    kept: set[tuple[type, str]] = set()
    work = list(works)
    for kind, table in ((Intent, INTENTS), (ToolExecution, RECORDS)):
        names = [each.id for each in work if isinstance(each, Intent | ToolExecution) and isinstance(each, kind)]
        kept |= {(kind, name) for name in _existing(connection, table, names)}
    return kept


def _existing(connection: Connection, table: str, names: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for begin in range(0, len(names), _AT_ONCE):
        some = names[begin : begin + _AT_ONCE]
        query = f"SELECT id FROM {table} WHERE id IN {marks(len(some))}"  # noqa: S608
        found.update(row[0] for row in fetch(connection, query, some))
    return found


def _intent(connection: Connection, name: str) -> tuple[Any, ...]:
    query = f"SELECT {', '.join(INTENT_COLUMNS)} FROM {INTENTS} WHERE id = ?"  # noqa: S608
    return fetch(connection, query, (name,))[0]
