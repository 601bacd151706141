"""The trail in one SQLite file, shared by all processes of this machine."""

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, NullPool, create_engine

from squidbot.adapters.store.database import run, scalar
from squidbot.adapters.store.failures import refusal

_QUICKLY_CHECKED = 16_000_000
"""Bytes of a file that is looked through at every start; a larger one is `audit verify`'s business."""
_PATIENCE = 1.0
_ASK = 0.0003
"""Seconds for a turn, and between two looks whether it has come."""


class SQLiteFile:
    """A database that is a file: write-ahead log, every commit on the disk before it is answered."""

    chain = "main"
    begin = "BEGIN IMMEDIATE"
    snapshot = "BEGIN"
    locking = ""
    # Plain INSERT keeps a copy of every page it changes, in a file of its own from 64 KB on, to undo one statement alone.
    insert = "INSERT OR ROLLBACK"

    def __init__(self, path: Path, *, lock_timeout: float) -> None:
        self.path = path
        self.place = str(path)
        self._lock_timeout = lock_timeout
        self._inode: tuple[int, int] | None = None
        self._held: dict[str, int] = {}
        self._turns = -1
        self._engine = create_engine("sqlite://", creator=self._open, poolclass=NullPool, isolation_level="AUTOCOMMIT")

    def using(self, index: str) -> str:
        # Left alone it walks the whole table backwards for a value that is hardly ever there.
        return f" INDEXED BY {index}"

    def create(self) -> None:
        if self._inode is not None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            # SQLite gives its -wal and -shm files the mode of this one.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        self._inode = self._find()

    def connect(self) -> Connection:
        return self._engine.connect()

    def check(self, connection: Connection) -> None:
        if self.path.stat().st_size <= _QUICKLY_CHECKED:
            verdict = scalar(connection, "PRAGMA quick_check(1)")
            if verdict != "ok":
                raise sqlite3_corrupt(str(verdict))
        scalar(connection, "SELECT name FROM sqlite_master LIMIT 1")

    def is_gone(self) -> bool:
        if self._inode is None:
            return False
        before, self._inode = self._inode, self._find()
        return before != self._inode

    @contextlib.contextmanager
    def migrating(self, connection: Connection) -> Iterator[None]:
        number = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            run(connection, "PRAGMA journal_mode = WAL")
            yield
        finally:
            os.close(number)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        # SQLite itself asks again after 1, 2, 5 … 100 ms: whoever writes all the time would have it nearly for themselves.
        taken = self._takes_turn()
        try:
            yield
        finally:
            if taken:
                fcntl.flock(self._turns, fcntl.LOCK_UN)

    def hold(self, connection: Connection, owner: str) -> None:  # noqa: ARG002
        if owner not in self._held and not self._take(owner, create=True):
            raise refusal(f"the sign of {owner} is locked", "restart squidbot", place=self.place)

    def claim(self, connection: Connection, owner: str) -> bool:  # noqa: ARG002
        return owner not in self._held and self._take(owner, create=False)

    def release(self, connection: Connection, owner: str) -> None:  # noqa: ARG002
        number = self._held.pop(owner, None)
        if number is not None:
            self._sign(owner).unlink(missing_ok=True)
            if number >= 0:
                os.close(number)

    @contextlib.contextmanager
    def seat(self, *, alone: bool) -> Iterator[bool]:
        try:
            number = os.open(f"{self.path}.gateways", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            # Where nothing can be written, nothing is let through that could be counted.
            yield True
            return
        try:
            fcntl.flock(number, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(number)

    def dispose(self) -> None:
        for number in self._held.values():
            if number >= 0:
                os.close(number)
        self._held.clear()
        if self._turns >= 0:
            os.close(self._turns)
            self._turns = -1
        self._engine.dispose()

    def _takes_turn(self) -> bool:
        """Whether nobody else has it; after a while it is not waited for any more, and SQLite decides alone."""
        deadline = time.monotonic() + _PATIENCE
        with contextlib.suppress(OSError):
            if self._turns < 0:
                self._turns = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            while True:
                try:
                    fcntl.flock(self._turns, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        return False
                    time.sleep(_ASK)
                else:
                    return True
        return False

    def _take(self, owner: str, *, create: bool) -> bool:
        """Lock the file that stands for `owner`: the system lets go of it when the process ends, however it does."""
        sign = self._sign(owner)
        if create:
            sign.parent.mkdir(exist_ok=True, mode=0o700)
        try:
            number = os.open(sign, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
        except FileNotFoundError:
            # Nobody stands behind a sign that is not there.
            self._held[owner] = -1
            return True
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(number)
            return False
        self._held[owner] = number
        return True

    def _find(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise refusal(
                "the file is gone", "put it back, and squidbot goes on; a restart begins a new one", place=self.place
            ) from None
        return found.st_dev, found.st_ino

    def _sign(self, owner: str) -> Path:
        return Path(f"{self.path}.owners", owner)

    def _open(self) -> sqlite3.Connection:
        # Never created here: a file that was removed while we run is a loss to be told, not a fresh start.
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",
            uri=True,
            timeout=self._lock_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,  # one for each number of rows that is written at once
        )
        connection.execute("PRAGMA synchronous = FULL")
        return connection


def sqlite3_corrupt(verdict: str) -> sqlite3.DatabaseError:
    """The error that SQLite itself raises when it comes upon damage."""
    error = sqlite3.DatabaseError(verdict)
    error.sqlite_errorname = "SQLITE_CORRUPT"
    return error
