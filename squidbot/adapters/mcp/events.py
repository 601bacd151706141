"""Reads server-sent events from chunks of bytes, in one pass, without ever holding more than one event may have."""

from dataclasses import dataclass

from squidbot.adapters.mcp.channel import ChannelClosed, Oversize

_EDGE = 4096
"""How much is kept of either end of an event that is too large: enough to find the id of the call it answers."""
_PATIENCE = 20
"""An event that is larger than so many times the limit will never end."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `id` and `retry` only if this event brought them."""

    name: str
    data: bytes
    id: str | None = None
    retry: int | None = None

    def encoded(self) -> bytes:
        """The event as it goes over the wire."""
        head = f"event: {self.name}\n"
        if self.id is not None:
            head += f"id: {self.id}\n"
        if self.retry is not None:
            head += f"retry: {self.retry}\n"
        parts = [head.encode()]
        for line in self.data.split(b"\n"):
            parts += (b"data: ", line, b"\n")
        return b"".join([*parts, b"\n"])  # at once: the data may be large, and each step would be a copy of it


class Events:
    """Feed it chunks as they come; it gives back the events that are complete."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._edge = min(_EDGE, limit)
        self._first = True
        self._after_cr = False
        self._line: list[bytes] = []
        self._line_length = 0
        self._clear()

    def _clear(self) -> None:
        self._name, self._data = "", list[bytes]()
        self._id: str | None = None
        self._retry: int | None = None
        self._told = False
        self._size = 0
        self._ends: tuple[bytes, bytes] | None = None

    @property
    def overflowing(self) -> bool:
        """Whether the event that is not complete yet is already too large."""
        return self._ends is not None

    def feed(self, chunk: bytes) -> list[Event | Oversize]:
        """The events that `chunk` completes. Raises ChannelClosed when an event goes on for ever."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *complete, rest = chunk.split(b"\n")
        events: list[Event | Oversize] = []
        for piece in complete:
            self._keep(piece)
            if self._line_length:
                self._end_line()
            elif (event := self._end_event()) is not None:
                events.append(event)
        self._keep(rest)
        return events

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._line_length += len(piece)
        self._size += len(piece)
        if self._size > self._limit * _PATIENCE:
            raise ChannelClosed(f"it sent an event without end (over {self._limit * _PATIENCE} bytes)")
        if self._ends is not None:
            head, tail = self._ends
            self._ends = (head + piece[:_EDGE])[: self._edge], (tail + piece[-_EDGE:])[-_EDGE:]
            return
        self._line.append(piece)
        if self._size > self._limit:
            whole = b"".join([*self._data, *self._line])
            self._ends = whole[: self._edge], whole[-_EDGE:]
            self._data.clear()
            self._line.clear()

    def _end_line(self) -> None:
        line, self._line = b"".join(self._line), []
        length, self._line_length = self._line_length, 0
        if self._first:
            line, self._first = line.removeprefix(_BOM), False
        if self._ends is not None:
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._name = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit() and len(value) < 10:
                self._retry = int(value)
            case _:
                self._size -= length  # a comment, or a field that nobody knows: nothing of it is kept
                return
        self._told = True

    def _end_event(self) -> Event | Oversize | None:
        event: Event | Oversize | None = None
        if self._ends is not None:
            event = Oversize(*self._ends, self._limit)
        elif self._told:
            event = Event(self._name or "message", b"\n".join(self._data), self._id, self._retry)
        self._first = False
        self._clear()
        return event
