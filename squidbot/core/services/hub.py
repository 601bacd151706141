"""Tells everybody in this process what happens: publishing never waits, and a slow listener misses, it does not delay."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from squidbot.core.domain.happenings import Happening, Topic

_BEHIND = 1_000
"""Happenings that a listener may be behind; the oldest are dropped first."""


class Hub:
    """Listeners come and go at any time. Whatever is published in one gateway is also given to `outward`, if set."""

    def __init__(self) -> None:
        self.outward: Callable[[Happening], None] | None = None
        """What carries happenings to the other gateways; it must not wait and must not raise."""
        self.carries: Callable[[Topic], bool] = lambda _: True
        """Whether what is published under a topic would reach anybody there."""
        self.on_listen: Callable[[], None] = lambda: None
        """Told when somebody begins to listen."""
        self._listeners: dict[int, tuple[frozenset[Topic] | None, _Queue]] = {}
        self._next = 0

    def publish(self, happening: Happening, *, local: bool = False) -> None:
        """Tell everybody; with `local` only in this process, as for what came from another gateway."""
        for topics, queue in tuple(self._listeners.values()):
            if topics is None or happening.topic in topics:
                queue.put(happening)
        if self.outward is not None and not local:
            self.outward(happening)

    @contextmanager
    def listen(self, topics: Collection[Topic] | None = None) -> Iterator[MemoryObjectReceiveStream[Happening]]:
        """A stream of what happens from now on; leaving the context ends it."""
        key, self._next = self._next, self._next + 1
        queue = _Queue()
        self._listeners[key] = (None if topics is None else frozenset(topics), queue)
        self.on_listen()
        try:
            yield queue.receive
        finally:
            del self._listeners[key]
            queue.close()

    def is_heard(self, topic: Topic) -> bool:
        """Whether what is published under a topic reaches anybody."""
        return (self.outward is not None and self.carries(topic)) or self.is_heard_here(topic)

    def is_heard_here(self, topic: Topic) -> bool:
        """Whether it reaches anybody in this process."""
        for topics, _ in self._listeners.values():  # noqa: SIM110  asked at every call: a generator takes longer
            if topics is None or topic in topics:
                return True
        return False

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return len(self._listeners)


class _Queue:
    """A bounded stream that forgets its oldest item rather than wait."""

    def __init__(self) -> None:
        streams: tuple[MemoryObjectSendStream[Happening], MemoryObjectReceiveStream[Happening]]
        streams = anyio.create_memory_object_stream[Happening](_BEHIND)
        self._send, self.receive = streams

    def put(self, happening: Happening) -> None:
        while True:
            try:
                self._send.send_nowait(happening)
            except anyio.WouldBlock:
                self.receive.receive_nowait()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            else:
                return

    def close(self) -> None:
        self._send.close()
        self.receive.close()
