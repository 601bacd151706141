"""Results that are too large for a model, kept whole in a folder, the newest of them."""

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"[0-9a-f]{16}")
_MOST = 200


class FolderShelf:
    """Satisfies `ResultShelf`: one file each, for its owner's eyes only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, text: str) -> str:
        """Keep a text; what is too old makes room for it. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = secrets.token_hex(8)
        place = os.open(self._folder / f"{name}.txt", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(place, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
        self._make_room()
        return name

    def read(self, name: str) -> str:
        """Raises KeyError."""
        if not _NAME.fullmatch(name):
            raise KeyError(name)
        try:
            with (self._folder / f"{name}.txt").open(encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError):
            raise KeyError(name) from None

    def _make_room(self) -> None:
        files = list(self._folder.glob("*.txt"))
        if len(files) <= _MOST:
            return
        with suppress(OSError):
            for file in sorted(files, key=lambda file: file.stat().st_mtime)[:-_MOST]:
                file.unlink(missing_ok=True)
