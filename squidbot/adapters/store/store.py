"""The audit trail, grants and alerts behind the ports of the core, in whichever database the settings name."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from anyio import to_thread
from loguru import logger
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from squidbot.adapters.store import charts, pruning, reading, tables, tokens, verifying
from squidbot.adapters.store.database import Database
from squidbot.adapters.store.failures import not_recorded
from squidbot.adapters.store.head import HeadFile
from squidbot.adapters.store.ledger import Ledger
from squidbot.adapters.store.migrating import VERSIONS, version
from squidbot.adapters.store.postgres import PostgresDatabase
from squidbot.adapters.store.recovery import now
from squidbot.adapters.store.seat import Seat
from squidbot.adapters.store.sqlite import SQLiteFile
from squidbot.adapters.store.writer import Writer
from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.audit import Grants, Intent, RecordFilter, ToolExecution, Usage, Verification
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import ConfigError, NotRecorded
from squidbot.core.domain.members import TokenRecord
from squidbot.core.domain.views import Series

T = TypeVar("T")

_POLL = 0.2
"""Seconds between two looks for new records."""
_EVERYTHING = RecordFilter()


class SQLStore:
    """AuditLog, Trail, GrantStore, TokenStore and AlertSink over SQL; opened with `async with`.

    What it has answered is on the disk. What it cannot write it refuses with NotRecorded, and it goes on by itself as soon
    as it can. `url` names the database: `sqlite:///PATH`, `postgresql://…`, or None for `audit.db` in the state folder.
    """

    def __init__(self, url: str | None, *, state: Path, lock_timeout: float = 5.0) -> None:
        self._database = _database(url, state, lock_timeout)
        self._head_file = HeadFile(state)
        self._state = state
        self._writer = Writer(self._database, self._head_file)
        self.only_reads = False
        """Whether it is opened to be looked at, also if it is damaged: then something may still be legible."""

    @property
    def place(self) -> str:
        """Where the database is, without a password."""
        return self._database.place

    async def __aenter__(self) -> Self:
        """Bring the tables up to date, and close what a dead process left open. Raises NotRecorded."""
        try:
            self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise not_recorded(error, place=str(self._state)) from error
        self._writer.start()
        try:
            await self._writer.submit(None)
        except NotRecorded as refusal:
            if not await to_thread.run_sync(self._is_readable):
                await self._stop()
                raise
            logger.warning("{}. {}", refusal, refusal.hint)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()

    def seat(self, *, alone: bool) -> Seat:
        """A gateway's place at this database; `alone` if it counts calls for itself."""
        return Seat(self._database, alone=alone)

    async def begin(self, intent: Intent) -> None:
        """Keep what is about to happen. Raises NotRecorded.

        Whoever is cancelled while waiting need not close it: the call was not made, and that is recorded here.
        """
        try:
            await self._writer.submit(intent)
        except asyncio.CancelledError:
            self._writer.submit(_cancelled(intent)).add_done_callback(_overlook)
            raise

    async def close(self, record: ToolExecution) -> None:
        """Keep how it ended. Raises NotRecorded; the end is then written as soon as something can be."""
        await self._writer.submit(record)

    async def records(self, wanted: RecordFilter, *, newest: int | None = None) -> AsyncIterator[ToolExecution]:
        """Matching records, oldest first; with `newest` only the last so many. Raises NotRecorded."""
        found = reading.records(self._database, wanted, newest)
        while page := await self._read(partial(_page, found)):
            for record in page:
                yield record

    async def page(
        self, wanted: RecordFilter = _EVERYTHING, *, newest: int, before: Mapping[str, int] | None = None
    ) -> tuple[list[ToolExecution], dict[str, int] | None]:
        """Matching records, newest first, and what to give as `before` for older ones. Raises NotRecorded."""
        return await self._read(partial(reading.page, self._database, wanted, newest, before))

    async def heads(self) -> dict[str, int]:
        """How far every chain has come. Raises NotRecorded."""
        return await self._read(partial(reading.heads, self._database))

    async def follow(
        self, wanted: RecordFilter = _EVERYTHING, *, after: Mapping[str, int] | None = None
    ) -> AsyncGenerator[ToolExecution, None]:
        """Matching records as they come: past the heads given, else from now on. Raises NotRecorded."""
        after = dict(await self.heads() if after is None else after)
        while True:
            for record in await self._read(partial(reading.later, self._database, wanted, after)):
                yield record
            await anyio.sleep(_POLL)

    async def get(self, name: str) -> ToolExecution | None:
        """The record with this id. Raises NotRecorded."""
        return await self._read(partial(reading.find, self._database, name))

    async def get_by_beginning(self, beginning: str) -> ToolExecution | None:
        """The one record whose id begins so; none if there are several. Raises NotRecorded."""
        return await self._read(partial(reading.find_by_beginning, self._database, beginning))

    async def usage(self, wanted: RecordFilter = _EVERYTHING) -> list[Usage]:
        """What each role made of each tool. Raises NotRecorded."""
        return await self._read(partial(reading.usage, self._database, wanted))

    async def series(self, wanted: RecordFilter = _EVERYTHING, *, begin: float, seconds: int, count: int) -> Series:
        """Calls counted and timed in so many spans of so many seconds. Raises NotRecorded."""
        ask = partial(charts.series, self._database, wanted, begin=begin, seconds=seconds, count=count)
        return await self._read(ask)

    async def open_intents(self) -> int:
        """How many calls have begun and not ended. Raises NotRecorded."""
        return await self._read(partial(reading.open_intents, self._database))

    async def verify(self) -> Verification:
        """Whether the trail is whole. Raises NotRecorded."""
        return await self._read(partial(verifying.verify, self._database, self._head_file))

    async def prune(self, before: str, *, caller: Caller | None = None) -> int:
        """Remove the beginning of each chain that is older than a timestamp; how many rows. Raises NotRecorded."""
        count = 0
        for cut in await self._read(partial(pruning.plan, self._database, before)):
            for step in pruning.steps(self._database, cut, before, caller):
                await self._writer.submit(step)
            count += cut.sequence - cut.base
        return count

    async def load(self) -> Grants:
        """All grants of the database. Raises NotRecorded."""
        return await self._read(partial(tables.load_grants, self._database))

    async def change(self, *, role: str, server: str, tool: str, enabled: bool, record: ToolExecution) -> Grants:
        """Make or withdraw a grant and keep the record of it, both or neither. Raises NotRecorded."""

        def both(ledger: Ledger) -> Grants:
            ledger.add_record(record)
            return tables.change_grant(ledger.connection, role=role, server=server, tool=tool, enabled=enabled)

        return await self._write(both)

    async def send(self, alert: Alert) -> None:
        """Keep an alert. Raises nothing: what cannot be kept is named in the log."""
        try:
            # Made here: what cannot be written as JSON must not fail the batch that it would be part of.
            row = tables.alert_row(alert)
            await self._write(lambda ledger: tables.add_alert(ledger.connection, row))
        except (NotRecorded, TypeError, ValueError) as error:
            logger.warning("an alert is not kept ({}): {}", alert.message, error)

    async def alerts(self, *, newest: int | None = None) -> list[Alert]:
        """Alerts, oldest first; with `newest` only the last so many. Raises NotRecorded."""
        return await self._read(partial(tables.load_alerts, self._database, newest))

    async def first_uses(self) -> set[tuple[str, str, str]]:
        """Every role, server and tool that have met. Raises NotRecorded."""
        return await self._read(partial(tables.load_first_uses, self._database))

    async def note_first_use(self, role: str, server: str, tool: str) -> bool:
        """Remember that a role used a tool; whether that is new. Raises NotRecorded."""
        return await self._write(lambda ledger: tables.add_first_use(ledger.connection, role, server, tool))

    async def add_token(self, token: TokenRecord, *, record: ToolExecution) -> None:
        """Keep a token, its member, and the record of it: all or nothing. Raises NotRecorded."""

        def both(ledger: Ledger) -> None:
            ledger.add_record(record)
            tokens.add_token(ledger.connection, token)

        await self._write(both)

    async def find_token(self, name: str) -> TokenRecord | None:
        """The token with this id, revoked or expired or not. Raises NotRecorded."""
        return await self._read(partial(tokens.find_token, self._database, name))

    async def tokens(self) -> list[TokenRecord]:
        """All tokens, the newest last. Raises NotRecorded."""
        return await self._read(partial(tokens.load_tokens, self._database))

    async def revoke_token(self, name: str, *, record: ToolExecution) -> bool:
        """Whether there was such a token to revoke; if so, that is recorded with it. Raises NotRecorded."""

        def both(ledger: Ledger) -> bool:
            revoked = tokens.revoke_token(ledger.connection, name)
            if revoked:
                ledger.add_record(record)
            return revoked

        return await self._write(both)

    async def key(self, name: str) -> bytes:
        """32 random bytes, made at the first question and then the same for everybody. Raises NotRecorded."""
        found = await self._read(partial(tokens.find_key, self._database, name))
        if found is not None:
            return found
        return await self._write(lambda ledger: tokens.make_key(ledger.connection, name))

    async def _write(self, work: Callable[[Ledger], T]) -> T:
        answer: T = await self._writer.submit(work)
        return answer

    async def _read(self, read: Callable[[], T]) -> T:
        try:
            return await to_thread.run_sync(read, abandon_on_cancel=True)
        except Exception as error:
            raise not_recorded(error, place=self.place) from error

    async def _stop(self) -> None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._writer.stop())
            await to_thread.run_sync(self._database.dispose)

    def _is_readable(self) -> bool:
        """Whether what cannot be written now is sound, so that it can be read, and perhaps written later."""
        try:
            with self._database.connect() as connection:
                if not self.only_reads:
                    self._database.check(connection)
                return version(connection) == VERSIONS[-1]
        except Exception:  # noqa: BLE001  why it cannot be used is told already
            return False


def _database(url: str | None, state: Path, lock_timeout: float) -> Database:
    if url is None:
        return SQLiteFile(state / "audit.db", lock_timeout=lock_timeout)
    try:
        parsed = make_url(url.replace("postgres://", "postgresql://", 1))
    except ArgumentError:
        # Not shown: it may hold a password.
        raise ConfigError("audit.url is no url of a database", hint=_URLS) from None
    match parsed.get_backend_name():
        case "sqlite" if parsed.database:
            return SQLiteFile(Path(parsed.database).expanduser().absolute(), lock_timeout=lock_timeout)
        case "postgresql":
            return PostgresDatabase(parsed, state=state, lock_timeout=lock_timeout)
        case name:
            raise ConfigError(f"audit.url names {name!r}, which squidbot cannot use", hint=_URLS)


_URLS = "Use sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE."


def _page(found: Iterator[ToolExecution]) -> list[ToolExecution]:
    return list(islice(found, reading.PAGE))


def _cancelled(intent: Intent) -> ToolExecution:
    return ToolExecution(
        id=intent.id,
        timestamp=now(),
        squad_member_id=intent.squad_member_id,
        role=intent.role,
        server=intent.server,
        tool=intent.tool,
        arguments=intent.arguments,
        result=None,
        success=False,
        error_message="cancelled before the call was made",
        origin=intent.origin,
        outcome="cancelled",
        duration=0.0,
        revision=intent.revision,
        kind=intent.kind,
    )


def _overlook(future: asyncio.Future[Any]) -> None:
    """Nobody waits for it; what could not be written is written later."""
    if not future.cancelled():
        future.exception()
