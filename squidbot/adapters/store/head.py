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
        self._written: tuple[bytes, Head] | None = None
        """Our own last, so that it need not be read again word by word."""

    def read(self) -> Head | None:
        """The head as written, None if there is none. Raises OSError, or ValueError for what is no head."""
        try:
            return _parse(self.path.read_bytes())
        except FileNotFoundError:
            return None

    def set_aside(self) -> dict[Path, Head | None]:
        """Heads that the trail did not go on from, though nobody said so; None for what is no head."""
        found: dict[Path, Head | None] = {}
        for path in sorted(self.path.parent.glob("audit.head.*")):
            try:
                found[path] = _parse(path.read_bytes())
            except ValueError:
                found[path] = None
        return found

    def miss(self, head: Head) -> None:
        """Keep a head that is not in the trail any more, for `audit verify` to report."""
        try:
            self._keep(head.hash, _render(head))
        except OSError as error:
            logger.warning("{} is not in the trail any more, and that cannot be noted: {}", head, error.strerror)

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
        written = os.pread(number, _SIZE, 0)
        try:
            before = self._written[1] if self._written and self._written[0] == written else _parse(written)
        except ValueError:
            before = None
            self._keep("unreadable", written)
        if before is not None and before.first_hash != head.first_hash:
            self._keep(before.first_hash, _render(before))
        elif before is not None and before.sequence >= head.sequence:
            return
        data = _render(head)
        os.pwrite(number, data, 0)
        self._written = (data, head)

    def _keep(self, name: str, data: bytes) -> None:
        aside = self.path.with_name(f"audit.head.{name[:12]}")
        aside.write_bytes(data)
        logger.warning(
            "the trail did not go on from where {} says it was; that is now {}, and `audit verify` reports it until you "
            "move it away",
            *(self.path, aside.name),
        )


def _render(head: Head) -> bytes:
    return f"{head.chain} {head.sequence} {head.hash} {head.first_hash}".ljust(_SIZE - 1).encode() + b"\n"


def _parse(data: bytes) -> Head | None:
    if not data.strip():
        return None
    chain, sequence, digest, first = data.decode("ascii").split()
    return Head(chain, int(sequence), digest, first)
