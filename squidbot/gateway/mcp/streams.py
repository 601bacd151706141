"""Streams on which clients wait to hear of changes: each hears only of what its role can see, and only if it changed."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.domain.errors import NotRecorded
from squidbot.core.domain.happenings import Happening, Topic
from squidbot.core.services.door import AgentMCPService
from squidbot.gateway.mcp.lists import Kind, Lists

CHANGED: Final[Mapping[Kind, str]] = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
}
TOPICS: Final[tuple[Topic, ...]] = (
    "tools",
    "prompts",
    "resources",
    "resource_updated",
    "state",
    "grants",
    "settings",
    "tokens",
    "relay",
)
_ALL: Final[tuple[Kind, ...]] = ("tools", "prompts", "resources")
_CONCERNED: Final[Mapping[Topic, tuple[Kind, ...]]] = {
    "tools": ("tools",),
    "prompts": ("prompts",),
    "resources": ("resources",),
    "state": _ALL,
    "grants": _ALL,
    "settings": _ALL,
}


@dataclass(eq=False, slots=True)
class Stream:
    """One client that waits; `put` says whether there was room for what it is told."""

    caller: Caller
    server: str | None
    kinds: Collection[Kind]
    uris: Collection[str]
    """May grow and shrink while the stream is open."""
    put: Callable[[str, Mapping[str, Any] | None], bool]
    token: str = ""
    expires: float | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    seen: dict[Kind, bytes] = field(default_factory=dict)


class Streams:
    """All streams that are open in this process."""

    def __init__(self, door: AgentMCPService, lists: Lists, options: EndpointOptions) -> None:
        self._door = door
        self._lists = lists
        self._options = options
        self._open: set[Stream] = set()
        self._is_draining = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """Whether another one would be too many."""
        return self._is_draining or len(self._open) >= self._options.most_streams

    def open(self, stream: Stream) -> None:
        """From now on it hears of changes of what it sees now."""
        for kind in stream.kinds:
            stream.seen[kind] = self._print(stream, kind)
        self._open.add(stream)

    def close(self, stream: Stream) -> None:
        """It hears nothing more."""
        self._open.discard(stream)
        stream.ended.set()

    def drain(self) -> None:
        """End all streams and open no more."""
        self._is_draining = True
        for stream in tuple(self._open):
            self.close(stream)

    async def tell(self, happenings: Collection[Happening]) -> None:
        """Tell everybody whom it concerns."""
        kinds = {kind for happening in happenings for kind in _CONCERNED.get(happening.topic, ())}
        if any(happening.topic in ("grants", "settings") for happening in happenings):
            try:
                await self._door.permissions.refresh(now=True)
            except NotRecorded:
                return  # nobody can be told what is not known; calls are refused meanwhile
        for stream in tuple(self._open):
            self._tell_lists(stream, kinds)
            for happening in happenings:
                self._tell(stream, happening)

    def sweep(self, time: float) -> None:
        """End the streams of those whose token has expired by now."""
        for stream in tuple(self._open):
            if stream.expires is not None and stream.expires <= time:
                self.close(stream)

    def _tell_lists(self, stream: Stream, kinds: Collection[Kind]) -> None:
        for kind in stream.kinds:
            if kind not in kinds:
                continue
            now = self._print(stream, kind)
            if now != stream.seen[kind]:
                stream.seen[kind] = now
                self._put(stream, CHANGED[kind], None)

    def _tell(self, stream: Stream, happening: Happening) -> None:
        match happening.topic:
            case "resource_updated":
                uri = happening.data.get("uri")
                if stream.server == happening.server and uri in stream.uris and self._sees(stream):
                    self._put(stream, "notifications/resources/updated", {"uri": uri})
            case "tokens":
                # Whether the token is still good is for whoever admits the next request to say.
                if happening.data.get("revoked") and happening.data.get("id") == stream.token:
                    self.close(stream)
            case "grants" | "settings":
                if not self._sees(stream):
                    self.close(stream)
            case _:
                pass

    def _sees(self, stream: Stream) -> bool:
        return stream.server is None or self._door.permissions.has_server(stream.caller, stream.server)

    def _put(self, stream: Stream, method: str, params: Mapping[str, Any] | None) -> None:
        if not stream.put(method, params):
            self.close(stream)  # it does not read: it will come back and ask for the lists

    def _print(self, stream: Stream, kind: Kind) -> bytes:
        listed = self._lists.of(stream.caller, stream.server, kind).fingerprint
        if kind == "resources":
            listed += self._lists.of(stream.caller, stream.server, "templates").fingerprint
        return listed
