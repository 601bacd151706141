"""Brings the tables up to date before anything uses them."""

from pathlib import Path

from sqlalchemy import Connection

from squidbot.adapters.store.database import Database, scalar, transaction
from squidbot.adapters.store.failures import is_missing_table, refusal

VERSIONS = ("0001", "0002", "0003")
"""Every version that the tables have had; the last is this program's."""


def prepare(database: Database) -> None:
    """Create the database or bring it up to date, if it is not. Raises what the driver raises, or NotRecorded."""
    database.create()
    with database.connect() as connection:
        database.check(connection)
        if version(connection) == VERSIONS[-1]:
            return
        with database.migrating(connection):
            found = version(connection)
            if found is not None and found not in VERSIONS:
                raise refusal(
                    f"it was written by a newer squidbot (its tables are version {found})",
                    "use that version, or name another database in audit.url",
                    place=database.place,
                )
            if found != VERSIONS[-1]:
                with transaction(connection, database.begin):
                    # What finds a transaction open leaves it alone: ours, which it cannot see, is committed by ourselves.
                    connection.begin()
                    _create(connection) if found is None else _upgrade(connection)


def version(connection: Connection) -> str | None:
    """The version of the tables, None if there are none."""
    try:
        found = scalar(connection, "SELECT version_num FROM alembic_version")
    except Exception as error:
        if is_missing_table(error):
            return None
        raise
    return None if found is None else str(found)


def _create(connection: Connection) -> None:
    from squidbot.adapters.store import schema

    schema.create(connection, VERSIONS[-1])


def _upgrade(connection: Connection) -> None:
    # Only here, where it is needed: loading it takes longer than all else that a command does, and as much room as the store.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
