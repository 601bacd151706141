"""Cuts a stream of bytes into lines, in one pass, without ever holding more than one line may have."""

from squidbot.adapters.mcp.channel import ChannelClosed, Frame, Oversize

_EDGE = 4096
"""How much is kept of either end of a line that is too long: enough to find the id of the call it answers."""
_PATIENCE = 20
"""A line that is longer than so many times the limit will never end."""


class Lines:
    """Feed it chunks as they come; it gives back the lines that are complete."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> list[Frame]:
        """The lines that `chunk` completes. Raises ChannelClosed when a line goes on for ever."""
        *complete, rest = chunk.split(b"\n")
        frames: list[Frame] = []
        for piece in complete:
            if not self._size and len(piece) <= self._limit:
                if piece:
                    frames.append(piece)
                continue
            self._keep(piece)
            frames.append(self._take())
        if rest:
            self._keep(rest)
        return frames

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._parts.append(piece)
            return
        if self._size > self._limit * _PATIENCE:
            raise ChannelClosed(f"it wrote a line without end (over {self._limit * _PATIENCE} bytes)")
        if self._parts or not self._head:
            whole = b"".join([*self._parts, piece])
            self._parts.clear()
            self._head, self._tail = whole[:_EDGE], whole[-_EDGE:]
        else:
            if len(self._head) < _EDGE:
                self._head = (self._head + piece)[:_EDGE]
            self._tail = (self._tail + piece[-_EDGE:])[-_EDGE:]

    def _take(self) -> Frame:
        oversize = self._size > self._limit
        frame: Frame = Oversize(self._head, self._tail, self._limit) if oversize else b"".join(self._parts)
        self._parts, self._size, self._head, self._tail = [], 0, b"", b""
        return frame
