"""The trail in PostgreSQL, shared by several gateways, each with a chain of its own."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import URL, Connection, create_engine

from squidbot.adapters.store.database import run, scalar
from squidbot.core.domain.errors import ConfigError

_MIGRATING = 0x5351_5549_4442_4F54
"""The key of the lock under which the tables are changed."""
_SEATS = 0x5351_5549_4453_4541
"""The key of the lock that gateways hold while they live: shared, or alone."""
_PATIENCE = 60
"""Seconds to wait for that lock."""


class PostgresDatabase:
    """A database server: one chain per gateway identity, liveness shown by locks of the session."""

    begin = "BEGIN"
    snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    locking = " FOR UPDATE"
    # Whoever waits for a row is woken in the order in which they came.
    turn = staticmethod(contextlib.nullcontext)
    insert = "INSERT"

    def __init__(self, url: URL, *, state: Path, lock_timeout: float) -> None:
        self.place = url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)
        self.chain = ""
        self._identity = state / "gateway-id"
        options = {
            "lock_timeout": int(lock_timeout * 1000),
            "synchronous_commit": "on",
            # A gateway that vanished with its network must not be taken for alive for hours.
            "tcp_keepalives_idle": 10,
            "tcp_keepalives_interval": 5,
            "tcp_keepalives_count": 3,
        }
        try:
            self._engine = create_engine(
                url.set(drivername="postgresql+psycopg"),
                isolation_level="AUTOCOMMIT",
                pool_pre_ping=True,
                connect_args={
                    "connect_timeout": 5,
                    "application_name": "squidbot",
                    "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
                    "client_encoding": "utf8",
                },
            )
        except ModuleNotFoundError:
            raise ConfigError(
                "audit.url names a PostgreSQL database, and its driver is not installed",
                hint="Install it: pip install 'squidbot-gateway[postgres]'",
            ) from None

    def using(self, index: str) -> str:  # noqa: ARG002
        # It knows how often each value is there.
        return ""

    def create(self) -> None:
        self._identity.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self._identity.with_name(f".gateway-id.{os.getpid()}")
        if not self._identity.exists():
            fresh.write_text(secrets.token_hex(16), "ascii")
            # Whoever links first is it, and nobody reads half an identity.
            with contextlib.suppress(FileExistsError):
                os.link(fresh, self._identity)
            fresh.unlink()
        self.chain = self._identity.read_text("ascii").strip()

    def connect(self) -> Connection:
        return self._engine.connect()

    def check(self, connection: Connection) -> None:
        """The server looks after its own files."""

    def is_gone(self) -> bool:
        return False

    @contextlib.contextmanager
    def migrating(self, connection: Connection) -> Iterator[None]:
        # Whoever comes second waits for the tables, not only for a row.
        run(connection, f"SET lock_timeout = '{_PATIENCE}s'")
        run(connection, "SELECT pg_advisory_lock(?)", (_MIGRATING,))
        run(connection, "RESET lock_timeout")
        try:
            yield
        finally:
            # Explicitly: the session lives on in the pool.
            run(connection, "SELECT pg_advisory_unlock(?)", (_MIGRATING,))

    def hold(self, connection: Connection, owner: str) -> None:
        run(connection, "SELECT pg_advisory_lock(?)", (_key(owner),))

    def claim(self, connection: Connection, owner: str) -> bool:
        return bool(scalar(connection, "SELECT pg_try_advisory_lock(?)", (_key(owner),)))

    def release(self, connection: Connection, owner: str) -> None:
        run(connection, "SELECT pg_advisory_unlock(?)", (_key(owner),))

    @contextlib.contextmanager
    def seat(self, *, alone: bool) -> Iterator[bool]:
        take = "pg_try_advisory_lock" if alone else "pg_try_advisory_lock_shared"
        with self.connect() as connection:
            try:
                yield bool(scalar(connection, f"SELECT {take}(?)", (_SEATS,)))
            finally:
                connection.invalidate()  # a session that lived on in the pool would keep the lock

    def dispose(self) -> None:
        self._engine.dispose()


def _key(owner: str) -> int:
    """A lock's key, a signed number of 64 bits, of an owner's 16 hexadecimal digits."""
    return int.from_bytes(bytes.fromhex(owner), signed=True)
