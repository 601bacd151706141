"""The practice world on disk: documents, a bare repository, a working clone, and the file that tells clients of them."""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from squidbot.practice import clock, seed
from squidbot.practice.people import BOT, ORGANISATION, PEOPLE
from squidbot.practice.repository import Repository
from squidbot.practice.store import Document, Store

REPOSITORY = "shop"
_LOCK = "world.lock"
_STORE = "world.sqlite"
_MADE = (f"{REPOSITORY}.git", REPOSITORY, _STORE, f"{_STORE}-wal", f"{_STORE}-shm")


class WorldInUse(Exception):
    """Another process has this folder open."""


class World:
    """A folder and what is in it. Open it with `with`; an empty folder is seeded.

    One request at a time: whoever reads or changes anything holds `lock`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.store = Store(self.folder / _STORE)
        self.repository = Repository(self.folder / f"{REPOSITORY}.git")
        self.clone = self.folder / REPOSITORY
        self.lock = threading.RLock()
        self._held: int | None = None

    @property
    def is_open(self) -> bool:
        return self._held is not None

    def __enter__(self) -> Self:
        """Raises WorldInUse, OSError, GitFailed."""
        if not self.is_open:
            self.open()
        return self

    def open(self) -> None:
        """Raises WorldInUse, OSError, GitFailed."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._spare_what_is_not_ours()
        self._held = self._claim()
        try:
            self.store.open()
            if self.store.get("world", 1) is None:
                self.reset()
        except BaseException:
            self.close()
            raise

    def _spare_what_is_not_ours(self) -> None:
        """A world begins with its lock and has a store: what has a repository's name, and neither beside it, is somebody's own."""
        if (self.folder / _LOCK).exists() or (self.folder / _STORE).exists():
            return
        for path in (self.repository.path, self.clone):
            if os.path.lexists(path):
                raise FileExistsError(
                    errno.EEXIST, "it is no practice world's, and would be thrown away: name another folder", str(path)
                )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self.lock:
            self.store.close()
            if self._held is not None:
                os.close(self._held)
                self._held = None

    def reset(self) -> None:
        """Throw away what is in the world, the clone too, and seed it anew."""
        with self.lock:
            self.store.close()
            for name in _MADE:
                path = self.folder / name
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            start = datetime.now(UTC)
            self.repository.create(seed.history(start))
            self.repository.clone(self.clone, name=BOT.name, email=BOT.email)
            self.store.open()
            # Last and in one piece: a world without this was left half made, and is made again.
            with self.store.transaction():
                seed.fill(self.store, self.repository, start)
                self.store.put("world", {"id": 1, "created_at": clock.written(start)})

    @property
    def created_at(self) -> str:
        world = self.store.get("world", 1)
        assert world is not None, "the world is open"
        return str(world["created_at"])

    def announce(self, url: str) -> Path:
        """Write practice.json: where this world is and what opens it. Returns its path."""
        path = self.folder / "practice.json"
        temporary = path.with_suffix(".tmp")
        with _private(temporary) as descriptor:
            os.write(descriptor, json.dumps(self.directions(url), indent=2).encode() + b"\n")
        temporary.replace(path)
        return path

    def directions(self, url: str) -> Document:
        """Everything a client needs to find its way, by the names of the settings that take it."""
        return {
            "web_url": url,
            "github_api_url": f"{url}/github",
            "github_token": BOT.token,
            "github_repository": f"{ORGANISATION}/{REPOSITORY}",
            "jira_url": f"{url}/jira",
            "jira_data_center_url": f"{url}/jira-dc",
            "jira_username": BOT.email,
            "jira_api_token": BOT.token,
            "jira_project": "SHOP",
            "repository": str(self.clone),
            "bare_repository": str(self.repository.path),
            "tokens": {person.login: person.token for person in PEOPLE},
            "people": {
                person.login: {"name": person.name, "email": person.email, "role": person.role} for person in PEOPLE
            },
        }

    def _claim(self) -> int:
        descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise WorldInUse(
                f"the practice world in {str(self.folder)!r} is already running: use that one, or name another folder"
            ) from None
        return descriptor


@contextlib.contextmanager
def _private(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
