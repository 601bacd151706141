"""What is known of a server from the last time: its era, and what it listed. One small file per definition."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from loguru import logger

from squidbot.adapters.mcp.eras import Era

_LARGEST = 64_000_000


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
                path = self._folder / f"{digest}.json"
                if path.stat().st_size <= _LARGEST:
                    self._known[digest] = Remembered(**json.loads(path.read_bytes()))
            except (OSError, ValueError, TypeError, RecursionError):
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
            handle, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(asdict(known), file)
            Path(name).replace(self._folder / f"{digest}.json")
        except OSError as error:
            logger.warning("what was learnt of a server cannot be kept: {}", error.strerror)

    def forget(self, digest: str) -> None:
        """What was known has proved wrong."""
        self._known.pop(digest, None)
        if self._folder is not None:
            (self._folder / f"{digest}.json").unlink(missing_ok=True)
