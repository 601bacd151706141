"""The seam between the wire and a transport: frames in, frames out, and why it ended.

A transport is a function that takes a server's resolved settings and its bounds and returns an
async context manager of a `Channel`; one table picks it (`transports/__init__.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one server may send before it is told no."""

    bytes: int = 10 * MEGABYTE
    """Of one message, decoded."""
    blocks: int = 10_000
    """Content blocks of one result."""
    objects: int = 100_000
    """JSON objects and arrays in one message."""
    depth: int = 200
    """Nesting of one message."""
    tools: int = 2_000
    pages: int = 100
    notifications: int = 1_000
    """A second, beyond which they are dropped and counted."""

    @property
    def words(self) -> int:
        """Bytes of notifications a second, beyond which they are dropped and counted."""
        return self.bytes // 10


@dataclass(frozen=True, slots=True)
class Oversize:
    """A frame that was larger than allowed and thrown away, but for its two ends, by which its call may be told."""

    head: bytes
    tail: bytes
    limit: int


Frame: TypeAlias = bytes | Oversize


class ChannelClosed(Exception):
    """The peer is gone; the text says why in short: an exit code, a close code, a status.

    `detail` is for people and not for models: the last words on stderr, a path.
    """

    def __init__(self, reason: str, *, detail: str = "", hint: str | None = None, status: int | None = None) -> None:
        super().__init__(reason)
        self.detail = detail
        self.hint = hint
        self.status = status


class Channel(Protocol):
    """A duplex of whole frames, each one JSON-RPC message in UTF-8."""

    async def receive(self) -> Sequence[Frame]:
        """The frames that have come, at least one. Raises ChannelClosed when there will be none any more."""
        ...

    async def send(self, frame: bytes, request_id: int | str | None) -> None:
        """Hand one message to the peer; waits only while the peer's buffers are full.

        `request_id` is the id of the request in `frame`, if it is one. A transport that learns later that a
        request was not accepted (an HTTP status) answers it itself, by a JSON-RPC error frame with that id
        out of `receive` whose data `http_failure.failure_of` can read. Raises ChannelClosed.
        """
        ...
