"""What went wrong with the database, in words: what failed, why, and what to do about it."""

import errno
import sqlite3
from typing import TypeAlias

from sqlalchemy.exc import DBAPIError

from squidbot.core.domain.errors import NotRecorded

Words: TypeAlias = tuple[str, str]

_MOVE = (
    "keep it for inspection: move the file (with its -wal and -shm) and audit.head out of the way, "
    "then start again with a new one, or put a backup in its place"
)
_SQLITE: dict[str, Words] = {
    "SQLITE_FULL": ("the disk is full", "free some space; squidbot goes on by itself"),
    "SQLITE_BUSY": (
        "another program keeps the database locked",
        "end that program's transaction; squidbot goes on by itself",
    ),
    "SQLITE_LOCKED": (
        "another program keeps the database locked",
        "end that program's transaction; squidbot goes on by itself",
    ),
    "SQLITE_READONLY": (
        "the file or its folder may not be written",
        "give squidbot's user the right to write both; squidbot goes on by itself",
    ),
    "SQLITE_CANTOPEN": (
        "the file cannot be opened",
        "check that the folder exists and that squidbot's user may write it",
    ),
    "SQLITE_NOTADB": ("the file is no SQLite database", _MOVE),
    "SQLITE_CORRUPT": ("the database is damaged", _MOVE),
    "SQLITE_IOERR": (
        "the disk did not take or give the data",
        "check that it is not full and not failing; squidbot goes on by itself",
    ),
}
_POSTGRES: dict[str, Words] = {
    "08": ("the connection was lost", "check that the server runs; squidbot goes on by itself"),
    "25006": ("the server takes no writes now", "point audit.url at the primary server"),
    "28": ("the server refused the user", "check the user and the password in audit.url"),
    "3D": ("there is no such database", "create it, or correct audit.url"),
    "42501": (
        "the user may not do this",
        "grant the user of audit.url the right to create and write tables in this database",
    ),
    "53100": ("the server's disk is full", "free some space there; squidbot goes on by itself"),
    "53": ("the server has no room for more", "check its connections and memory; squidbot goes on by itself"),
    "55P03": ("another program keeps the rows locked", "end that program's transaction; squidbot goes on by itself"),
    "57": ("the server is being stopped or started", "wait until it runs; squidbot goes on by itself"),
}
_ERRNO = {
    errno.ENOSPC: "SQLITE_FULL",
    errno.EDQUOT: "SQLITE_FULL",
    errno.EACCES: "SQLITE_READONLY",
    errno.EPERM: "SQLITE_READONLY",
    errno.EROFS: "SQLITE_READONLY",
}
_UNKNOWN: Words = ("", "look into it; squidbot tries again with the next call")


def not_recorded(error: Exception, *, place: str) -> NotRecorded:
    """What a caller is told when the trail at `place` could not be written or read because of `error`."""
    if isinstance(error, NotRecorded):
        # A new one for each who is told: callers note the record of their own attempt on it.
        return NotRecorded(str(error), hint=error.hint)
    return refusal(*_words(error), place=place)


def refusal(why: str, what_to_do: str, *, place: str) -> NotRecorded:
    """Where the trail is stands in the hint, which is for people: the message may reach a model."""
    return NotRecorded(f"the audit trail cannot be used: {why}", hint=f"In {place}: {what_to_do}.")


def is_damage(error: Exception) -> bool:
    """Whether the file itself is at fault, so that trying again cannot help."""
    return _sqlite_name(error).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def is_repeated(error: Exception) -> bool:
    """Whether a row was to be written whose id is there already."""
    return _sqlite_name(error).startswith("SQLITE_CONSTRAINT") or _state(error) == "23505"


def is_missing_table(error: Exception) -> bool:
    """Whether a query failed because the tables are not there yet."""
    return "no such table" in str(error) if isinstance(error, sqlite3.Error) else _state(error) == "42P01"


def _words(error: Exception) -> Words:
    if isinstance(error, OSError):
        known = _SQLITE.get(_ERRNO.get(error.errno or 0, ""))
        return known or (error.strerror or type(error).__name__, "check the disk, and squidbot's rights there")
    # Connecting is SQLAlchemy's, and wraps what the driver says; all else comes from the driver itself.
    orig = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(orig, sqlite3.Error):
        name = _sqlite_name(orig)
        known = next((words for start, words in _SQLITE.items() if name.startswith(start)), None)
        return known or (str(orig) or type(orig).__name__, _UNKNOWN[1])
    if state := _state(orig):
        known = _POSTGRES.get(state) or _POSTGRES.get(state[:2])
        return known or (_first_line(orig), _UNKNOWN[1])
    if isinstance(error, DBAPIError) or hasattr(orig, "sqlstate"):
        # Refused while connecting: the driver has the server's words, and no state.
        _, refused, words = str(orig).partition("FATAL:")
        if refused:
            return f"the server refused: {_first_line(words).strip()}", "check audit.url"
        return (
            "the server cannot be reached",
            "check that it runs and that audit.url names it; squidbot goes on by itself",
        )
    return type(error).__name__, _UNKNOWN[1]


def _sqlite_name(error: object) -> str:
    return getattr(error, "sqlite_errorname", None) or ""


def _state(error: object) -> str:
    return getattr(error, "sqlstate", None) or ""


def _first_line(error: object) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
