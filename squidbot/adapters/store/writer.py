"""The one thread that writes: takes all that is waiting, commits it at once, and then answers everybody."""

import asyncio
import contextlib
import queue
import secrets
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from loguru import logger
from sqlalchemy import Connection

from squidbot.adapters.store.database import Database, run, transaction
from squidbot.adapters.store.doubts import Doubts, recorded
from squidbot.adapters.store.failures import is_repeated, not_recorded
from squidbot.adapters.store.head import Head, HeadFile
from squidbot.adapters.store.ledger import Ledger, append
from squidbot.adapters.store.migrating import prepare
from squidbot.adapters.store.recovery import close_abandoned, recover
from squidbot.core.domain.audit import Intent, ToolExecution
from squidbot.core.domain.errors import NotRecorded

Work: TypeAlias = Intent | ToolExecution | Callable[[Ledger], Any] | None
"""What can be written: rows of the trail, or whatever else belongs into the same transaction; None only connects."""

_LARGEST_BATCH = 1024
_MARK_EVERY = 2000
"""Rows after which is noted how far back this process's oldest open call is, so that recovery need not look further."""


Entry: TypeAlias = tuple[Work, asyncio.Future[Any]]
"""Something to write, and who waits for it."""
_ROWS = (Intent, ToolExecution)


class Writer:
    """Writes in batches. A batch that fails is refused to all who wait for it, and the next one simply tries again."""

    def __init__(self, database: Database, head_file: HeadFile) -> None:
        self.owner = secrets.token_hex(8)
        self._database = database
        self._head_file = head_file
        self._queue: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._open: dict[str, int] = {}
        self._marked: int | None = None
        self._held = False
        self._owns = False
        self._doubts = Doubts()
        self._last: Head | None = None
        """Where the trail was when we last saw it: it must go on from there."""
        self._alone = True
        """Whether nobody else wrote since we last did, as far as we know: only then is the short way worth a try."""
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to write, for the callers of the running loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve, name="squidbot-audit", daemon=True)
        self._thread.start()

    def submit(self, work: Work) -> asyncio.Future[Any]:
        """Have it written; the answer comes when it is on the disk."""
        if self._thread is None or self._loop is None:
            raise NotRecorded("the audit trail is not open")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put((work, future))
        return future

    def stop(self) -> Callable[[], None]:
        """Take nothing more, write what is waiting, and end; what is returned blocks until that is done.

        Called in the loop, as `submit` is: nothing can slip in behind the last.
        """
        thread, self._thread = self._thread, None
        if thread is None:
            return lambda: None
        self._queue.put(None)
        return thread.join

    def _serve(self) -> None:
        going_on = True
        while going_on:
            batch, going_on = self._next_batch()
            if batch:
                answers = self._write(batch)
                # One wake-up of the loop for all; nobody is left to tell if it was closed meanwhile.
                with contextlib.suppress(RuntimeError):
                    assert self._loop is not None
                    self._loop.call_soon_threadsafe(_answer, answers)
        self._leave()

    def _next_batch(self) -> tuple[list[Entry], bool]:
        """All that waits, and whether more will come; while one batch is committed, the next one gathers."""
        waiting = [self._queue.get(), *(self._queue.get() for _ in range(min(self._queue.qsize(), _LARGEST_BATCH - 1)))]
        batch = [entry for entry in waiting if entry is not None]
        return batch, len(batch) == len(waiting)

    def _write(self, batch: list[Entry]) -> list[tuple[asyncio.Future[Any], Any]]:
        """What each of those who wait is told: a value, or an error."""
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        try:
            connection = self._connected()
            try:
                answers += self._commit(connection, batch)
            except Exception as error:
                if not is_repeated(error):
                    raise
                batch, refused = self._without_repeated(connection, batch)
                answers += refused
                if not refused:
                    raise
                answers += self._commit(connection, batch)
        except Exception as error:  # noqa: BLE001  whatever it was, those who wait must hear of it
            self._disconnect()
            self._doubts.add(work for work, _ in batch)
            place = self._database.place
            answers += [(future, not_recorded(error, place=place)) for _, future in batch]
        return answers

    def _commit(self, connection: Connection, batch: list[Entry]) -> list[tuple[asyncio.Future[Any], Any]]:
        with self._database.turn():
            if self._append(connection, batch):
                return [(future, None) for _, future in batch]
            return self._commit_anything(connection, batch)

    def _commit_anything(self, connection: Connection, batch: list[Entry]) -> list[tuple[asyncio.Future[Any], Any]]:
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        begun: dict[str, int] = {}
        ended: list[str] = []
        if not self._doubts and all(work is None for work, _ in batch):
            return [(future, None) for _, future in batch]
        if any(isinstance(work, Intent) for work, _ in batch):
            self._hold(connection)
        with transaction(connection, self._database.begin):
            ledger = Ledger(connection, self._database, self._database.chain)
            self._alone = self._last is None or self._last.sequence == ledger.sequence
            missed = self._missed(ledger)
            settled = self._doubts.settle(ledger, {work.id for work, _ in batch if isinstance(work, ToolExecution)})
            for work, future in batch:
                value: Any = None
                match work:
                    case Intent() as intent:
                        begun[intent.id] = ledger.add_intent(intent, self.owner)
                    case ToolExecution() as record:
                        ledger.add_record(record)
                        ended.append(record.id)
                    case None:
                        pass
                    case others:
                        value = others(ledger)
                answers.append((future, value))
            head = ledger.flush()
            marked = self._mark(connection, begun, ledger.sequence)
        if missed is not None:
            self._head_file.miss(missed)
        self._doubts.forget(settled)
        self._marked = marked
        self._open.update(begun)
        for name in (*ended, *settled):
            self._open.pop(name, None)
        if head is not None:
            self._last = head
            self._head_file.write(head)
        return answers

    def _append(self, connection: Connection, batch: list[Entry]) -> bool:
        """Commit a batch the short way, if it is nothing but rows and the trail is where we left it, as it nearly always is."""
        last, marked = self._last, self._marked
        if last is None or marked is None or not self._alone or not self._held or self._doubts:
            return False
        if last.sequence + len(batch) - marked >= _MARK_EVERY or not all(isinstance(work, _ROWS) for work, _ in batch):
            return False
        works = [work for work, _ in batch if isinstance(work, _ROWS)]
        appended = append(connection, self._database, works, behind=last, owner=self.owner)
        if appended is None:
            self._alone = False
            return False
        self._last, begun = appended
        self._open.update(begun)
        for work in works:
            if isinstance(work, ToolExecution):
                self._open.pop(work.id, None)
        self._head_file.write(self._last)
        return True

    def _missed(self, ledger: Ledger) -> Head | None:
        """The head that we knew, if the trail no longer has it: then somebody cut it off, or wrote it anew.

        Of another trail altogether tells the file itself, when it is written.
        """
        last = self._last
        if last is None or last.first_hash != ledger.first_hash or ledger.goes_on_from(last):
            return None
        return last

    def _mark(self, connection: Connection, begun: dict[str, int], sequence: int) -> int | None:
        """Note that calls of ours may be open, and since when."""
        if self._marked is None:
            if begun:
                run(
                    connection,
                    "INSERT INTO audit_owners (owner, chain, since) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    (self.owner, self._database.chain, min(begun.values())),
                )
                return sequence
        elif sequence - self._marked >= _MARK_EVERY:
            # In the order begun: the first is the oldest.
            oldest = next(iter(self._open.values()), min(begun.values(), default=sequence + 1))
            run(connection, "UPDATE audit_owners SET since = ? WHERE owner = ?", (oldest, self.owner))
            return sequence
        return self._marked

    def _without_repeated(
        self, connection: Connection, batch: list[Entry]
    ) -> tuple[list[Entry], list[tuple[asyncio.Future[Any], Any]]]:
        """The batch without rows whose id the trail has already, and the answers to those."""
        seen = recorded(connection, [work for work, _ in batch])
        good: list[Entry] = []
        refused: list[tuple[asyncio.Future[Any], Any]] = []
        for work, future in batch:
            if isinstance(work, _ROWS):
                key = (type(work), work.id)
                if key in seen:
                    what = "intent" if isinstance(work, Intent) else "end"
                    error = NotRecorded(f"the audit trail has an {what} of {work.id!r} already")
                    refused.append((future, error))
                    continue
                seen.add(key)
            good.append((work, future))
        return good, refused

    def _connected(self) -> Connection:
        """The open connection, or a new one where the old leads nowhere; the dead are seen to first."""
        if self._database.is_gone():
            self._disconnect()
        if self._connection is None:
            prepare(self._database)
            connection = self._database.connect()
            self._connection = connection
            self._marked, self._held = None, False
            # Read before the trail is: it is never ahead of what is then seen there.
            with contextlib.suppress(OSError, ValueError):  # a spoilt one is told when it is written
                known = self._head_file.read()
                self._last = known if known is not None and known.chain == self._database.chain else self._last
            if self._open:
                self._hold(connection)
            recover(connection, self._database, but=self.owner, on_commit=self._head_file.write)
        return self._connection

    def _hold(self, connection: Connection) -> None:
        """Show that we live, before there is anything that others could take for abandoned."""
        if not self._held:
            self._database.hold(connection, self.owner)
            self._held = self._owns = True

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.invalidate()
            with contextlib.suppress(Exception):
                connection.close()

    def _leave(self) -> None:
        """Close what was left open, and let go: the next to start has nothing to do for us."""
        try:
            if self._doubts or self._owns:
                connection = self._connected()
                self._commit(connection, [])
                self._close_own(connection)
                self._database.release(connection, self.owner)
        except Exception as error:  # noqa: BLE001  the next start does what could not be done now
            refusal = not_recorded(error, place=self._database.place)
            logger.warning("{}. {}", refusal, refusal.hint)
        self._disconnect()

    def _close_own(self, connection: Connection) -> None:
        oldest = next(iter(self._open.values()), 0)
        head: Head | None = None
        with transaction(connection, self._database.begin):
            if oldest:
                _, head = close_abandoned(
                    connection, self._database, owner=self.owner, chain=self._database.chain, since=oldest
                )
            else:
                run(connection, "DELETE FROM audit_owners WHERE owner = ?", (self.owner,))
        if head is not None:
            self._head_file.write(head)


def _answer(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, value in answers:
        if not future.done():
            if isinstance(value, Exception):
                future.set_exception(value)
            else:
                future.set_result(value)
