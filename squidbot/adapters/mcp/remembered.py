"""What is known of a server from the last time: its era, and what it listed. One small file per definition."""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from loguru import logger

from squidbot.adapters.mcp.eras import Era

_LARGEST = 64_000_000
_SHAPE: Mapping[str, Any] = {
    "era": str,
    "protocol": str,
    "over_sse": bool,
    "instructions": str | None,
    "info": dict,
    "tools": list,
    "prompts": list,
    "resources": list,
    "templates": list,
}


@dataclass(frozen=True, slots=True)
class Remembered:
    """The lists as the server wrote them, and how it was reached."""

    era: Era
    protocol: str
    over_sse: bool = False
    instructions: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    tools: list[Any] = field(default_factory=list)
    prompts: list[Any] = field(default_factory=list)
    resources: list[Any] = field(default_factory=list)
    templates: list[Any] = field(default_factory=list)


class Memory:
    """Remembers by a definition's digest in the state folder, or without one for as long as it lives itself."""

    def __init__(self, state: Path | None) -> None:
        self._folder = state / "servers" if state is not None else None
        self._known: dict[str, Remembered] = {}

    def recall(self, digest: str) -> Remembered | None:
        """What is known; a file that cannot be read is as good as none."""
        if digest not in self._known and self._folder is not None:
            try:
                self._known[digest] = _read(self._folder / f"{digest}.json")
            except (OSError, ValueError, RecursionError):
                return None
        return self._known.get(digest)

    def keep(self, digest: str, known: Remembered) -> None:
        """Write it down, whole or not at all."""
        if self._known.get(digest) == known:
            return
        self._known[digest] = known
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # In small parts: the whole at once would keep every other thread waiting.
            parts = json.JSONEncoder().iterencode({part.name: getattr(known, part.name) for part in fields(known)})
            _write(self._folder / f"{digest}.json", parts)
        except OSError as error:
            logger.warning("what was learnt of a server cannot be kept: {}", error.strerror)


def _read(path: Path) -> Remembered:
    """What a file of ours holds. Raises OSError, or ValueError where it is no file of ours."""
    if path.stat().st_size > _LARGEST:
        raise ValueError("too large")
    raw = json.loads(path.read_bytes())
    if not isinstance(raw, dict) or raw.keys() != _SHAPE.keys() or raw["era"] not in get_args(Era):
        raise ValueError("not what is kept of a server")
    if not all(isinstance(raw[key], kind) for key, kind in _SHAPE.items()):
        raise ValueError("not of the kind that is kept of a server")
    return Remembered(**raw)


def _write(path: Path, text: Iterable[str]) -> None:
    """Put `text` into a file that is there whole or not at all. Raises OSError, and then leaves nothing behind."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
