"""`audit.head`: how far the trail had come, kept outside the database, so that a cut-off tail is missed."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loguru import logger

_SIZE = 256
"""Bytes of the one record; a write of so few, at the same place, is whole or absent."""


@dataclass(frozen=True, slots=True)
class Head:
    """The last row of a chain. `first_hash`, of its first row, tells one trail from another of the same name."""

    chain: str
    sequence: int
    hash: str
    first_hash: str


class HeadFile:
    """The last head that was committed; it may lag behind the database, and is never ahead of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "audit.head"
        self._warned = False

    def read(self) -> Head | None:
        """The head as written, None if there is none. Raises OSError, or ValueError for what is no head."""
        try:
            return _parse(self.path.read_bytes())
        except FileNotFoundError:
            return None

    def set_aside(self) -> list[Path]:
        """Heads of trails that were replaced by another while nobody said so."""
        return sorted(self.path.parent.glob("audit.head.*"))

    def write(self, head: Head) -> None:
        """Note a committed head. The commit stands whatever comes of this, so a failure is only logged, once."""
        try:
            with self._locked() as number:
                self._replace(number, head)
            self._warned = False
        except OSError as error:
            if not self._warned:
                logger.warning("{} cannot be written ({}): a cut-off tail may go unseen", self.path, error.strerror)
            self._warned = True

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        # Opened anew each time: whoever removed the file must not have silenced it.
        number = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Several processes share it; the lock is held for two system calls.
            fcntl.flock(number, fcntl.LOCK_EX)
            yield number
        finally:
            os.close(number)

    def _replace(self, number: int, head: Head) -> None:
        try:
            before = _parse(os.pread(number, _SIZE, 0))
        except ValueError:
            before = None
        if before is not None and before.first_hash != head.first_hash:
            aside = self.path.with_name(f"audit.head.{before.first_hash[:12]}")
            aside.write_bytes(_render(before))
            logger.warning(
                "{} was of another trail with {} rows; it is now {}, and `audit verify` reports it until you move it away",
                *(self.path, before.sequence, aside.name),
            )
        elif before is not None and before.sequence >= head.sequence:
            return
        os.pwrite(number, _render(head), 0)


def _render(head: Head) -> bytes:
    return f"{head.chain} {head.sequence} {head.hash} {head.first_hash}".ljust(_SIZE - 1).encode() + b"\n"


def _parse(data: bytes) -> Head | None:
    if not data.strip():
        return None
    chain, sequence, digest, first = data.decode("ascii").split()
    return Head(chain, int(sequence), digest, first)
