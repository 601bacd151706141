"""Tells whether the settings file, or a file that it refers to, is another than it was: cheap to ask every second."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from squidbot.config.files import MAX_BYTES, under
from squidbot.config.schema import Settings

_Stamp: TypeAlias = tuple[int, int, int] | None


@dataclass
class Watched:
    """Some files as they were when they were last looked at."""

    _stamps: dict[Path, _Stamp] = field(default_factory=dict)
    _digests: dict[Path, bytes | None] = field(default_factory=dict)

    def look(self, files: Iterable[Path]) -> None:
        """Remember these files, and only these, as they are now; those known already stay as they were known."""
        wanted = list(dict.fromkeys(files))
        self._stamps = {path: self._stamps.get(path, _stamp(path)) for path in wanted}
        self._digests = {path: self._digests[path] if path in self._digests else _digest(path) for path in wanted}

    def changed(self) -> bool:
        """Whether any of them says something else than the last time; that is remembered."""
        different = False
        for path, before in self._stamps.items():
            now = _stamp(path)
            if now == before:
                continue
            self._stamps[path] = now
            digest = _digest(path)
            if digest != self._digests[path]:
                self._digests[path] = digest
                different = True
        return different


def files_of(settings: Settings) -> list[Path]:
    """The settings file, and the env files of its servers; none for the embedded default."""
    if settings.source is None:
        return []
    folder = settings.source.parent.absolute()
    named = [server.env_file for server in settings.tools.mcp_servers.values() if server.env_file]
    return [settings.source.absolute(), *(under(folder, str(name)) for name in named)]


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _digest(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(MAX_BYTES + 1)).digest()
    except OSError:
        return None
