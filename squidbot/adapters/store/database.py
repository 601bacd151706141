"""What the store asks of a database, whichever it is, and how SQL is run on it."""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Connection


class Database(Protocol):
    """Where the trail is. Connections commit by themselves unless a transaction is open."""

    @property
    def place(self) -> str:
        """Its name in messages, without a password."""
        ...

    @property
    def chain(self) -> str:
        """The chain that this process writes."""
        ...

    @property
    def begin(self) -> str:
        """How a transaction that writes begins."""
        ...

    @property
    def snapshot(self) -> str:
        """How a transaction begins whose reads all see the same moment."""
        ...

    @property
    def locking(self) -> str:
        """What a query ends with, to keep others from the rows it found until the transaction ends."""
        ...

    @property
    def insert(self) -> str:
        """How rows are put in; a row that cannot be there ends the whole transaction."""
        ...

    def using(self, index: str) -> str:
        """What follows a table's name in a query that is to go by this index."""
        ...

    def create(self) -> None:
        """Make whatever must be there before the first connection, and read who we are."""
        ...

    def connect(self) -> Connection: ...

    def check(self, connection: Connection) -> None:
        """Raise for a database that is damaged, as far as that is quickly seen."""
        ...

    def is_gone(self) -> bool:
        """Whether open connections lead to something that is no longer the database. Raises NotRecorded."""
        ...

    def migrating(self, connection: Connection) -> AbstractContextManager[None]:
        """While nobody else changes the tables."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """While other processes that want to write wait, as they had us wait; nothing depends on it but who waits how long."""
        ...

    def hold(self, connection: Connection, owner: str) -> None:
        """Show that `owner` lives, for as long as this process and this connection do."""
        ...

    def claim(self, connection: Connection, owner: str) -> bool:
        """Take over from `owner` if it lives no more."""
        ...

    def release(self, connection: Connection, owner: str) -> None:
        """Let go of what was held or claimed."""
        ...

    def seat(self, *, alone: bool) -> AbstractContextManager[bool]:
        """Be a gateway of this database, as the only one or as one of several, for as long as this process lives.

        False if that cannot be, beside those that are there. Raises the driver's errors.
        """
        ...

    def dispose(self) -> None: ...


def run(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> int:
    """Run one statement, its parameters marked with `?`; how many rows it changed. Raises the driver's errors."""
    changed: int = _execute(connection, sql, parameters).rowcount
    return changed


def fetch(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows that a query finds. Raises the driver's errors."""
    rows: list[tuple[Any, ...]] = _execute(connection, sql, parameters).fetchall()
    return rows


def scalar(connection: Connection, sql: str, parameters: Sequence[Any] = ()) -> Any:
    """The one value that a query finds, None if it finds nothing. Raises the driver's errors."""
    return next((row[0] for row in fetch(connection, sql, parameters)), None)


@contextlib.contextmanager
def transaction(connection: Connection, begin: str) -> Iterator[None]:
    """All or nothing of what is run meanwhile."""
    run(connection, begin)
    try:
        yield
    except BaseException:
        rolled_back(connection)
        raise
    run(connection, "COMMIT")


def rolled_back(connection: Connection) -> None:
    """Undo what was run since a transaction began."""
    # The first error is the one to tell; a connection that cannot even roll back is given up by its owner.
    with contextlib.suppress(Exception):
        run(connection, "ROLLBACK")


def marks(count: int) -> str:
    """A list of so many parameters."""
    return f"({', '.join('?' * count)})"


def _execute(connection: Connection, sql: str, parameters: Sequence[Any]) -> Any:
    # Both drivers' connections do this. Past SQLAlchemy's own execution, which takes a quarter of a lone record's time.
    driver = connection.connection.driver_connection
    assert driver is not None
    return driver.execute(_spelt(sql, connection.dialect.paramstyle), tuple(parameters))


@functools.lru_cache(maxsize=256)
def _spelt(sql: str, paramstyle: str) -> str:
    return sql if paramstyle == "qmark" else sql.replace("?", "%s")
