"""Who sends a message, to which part of the door, and the way back to them while it is dealt with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from squidbot.core.domain.callers import Caller, Envelope
from squidbot.core.domain.errors import NotOffered
from squidbot.core.domain.servers import LOG_SEVERITY, LogLevel, ServerLog
from squidbot.core.ports import Question
from squidbot.gateway.mcp.session import Session
from squidbot.gateway.mcp.sessions import State

_METHODS: Mapping[Question, str] = {"sampling": "sampling/createMessage", "elicitation": "elicitation/create"}
_ASKABLE = ("elicitation", "roots", "sampling")
_UNLESS_SET: LogLevel = "info"
"""What a client of the handshake era hears that never said what it wants to hear."""


class Line(Protocol):
    """The way back to a client while its request is dealt with."""

    def notify(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Whether it could be taken; it does not wait and raises nothing."""
        ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The client's result; None if it cannot be asked, does not want to, or takes too long."""
        ...

    async def settled(self) -> None:
        """Wait until what was told is on its way, so that nothing comes after the answer that belongs before it."""
        ...


class NoLine:
    """Satisfies `Line`: nobody is there."""

    def notify(self, method: str, params: Mapping[str, Any] | None) -> bool:
        del method, params
        return False

    async def ask(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        del method, params
        return None

    async def settled(self) -> None:
        return


@dataclass(frozen=True, slots=True)
class Visit:
    """One message and whoever sent it."""

    caller: Caller
    server: str | None
    """The part of the door: one server's, or None for all."""
    version: str
    capabilities: Mapping[str, Any]
    line: Line
    owner: str
    """Whose calls may be mistaken for each other: one session's, or nobody else's."""
    identity: tuple[str | None, ...] = ()
    """Whom a request's state that we hand out belongs to."""
    expires: float | None = None
    session: Session | None = None
    state: State = field(default_factory=lambda: State(0.0, 0.0, 0.0))

    @property
    def is_modern(self) -> bool:
        """Whether it is of the stateless era."""
        return self.version in MODERN_PROTOCOL_VERSIONS


class Correspondent:
    """Satisfies `Counterpart`: the client at the other end of one request."""

    def __init__(self, visit: Visit, meta: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        self._visit = visit
        wanted = meta.get(LOG_LEVEL_META_KEY) if visit.is_modern else visit.state.level or _UNLESS_SET
        self._severity = LOG_SEVERITY.get(wanted) if isinstance(wanted, str) else None  # type: ignore[call-overload]
        self._log_level = wanted if self._severity is not None else None
        self._given = given

    @property
    def owner(self) -> str:
        return self._visit.owner

    @property
    def envelope(self) -> Envelope | None:
        """What a client of the stateless era said, for a server of that era."""
        if not self._visit.is_modern:
            return None
        known = {name: self._visit.capabilities[name] for name in _ASKABLE if name in self._visit.capabilities}
        return Envelope(known, self._log_level, self._given)

    async def ask(self, question: Question, server: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Ask the client. Raises NotOffered if it never said that it can be asked this."""
        del server
        declared = self._visit.capabilities.get(question)
        if not isinstance(declared, Mapping):
            raise NotOffered(f"the client does not offer {question}")
        if question == "elicitation" and params.get("mode") == "url" and declared.get("url") is None:
            raise NotOffered("the client does not offer elicitation by url")
        return await self._visit.line.ask(_METHODS[question], params)

    async def log(self, entry: ServerLog) -> None:
        """Pass a log message on, if the client wants such."""
        if self._severity is None or LOG_SEVERITY[entry.level] < self._severity:
            return
        params: dict[str, Any] = {"level": entry.level, "data": entry.data}
        if self._visit.server is None:
            params["logger"] = f"{entry.server}/{entry.logger}" if entry.logger else entry.server
        elif entry.logger:
            params["logger"] = entry.logger
        self._visit.line.notify("notifications/message", params)

    async def progress(self, token: str | int, progress: float, total: float | None, message: str | None) -> None:
        """Tell how far the call is."""
        params: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None and self._visit.version != "2024-11-05":
            params["message"] = message
        self._visit.line.notify("notifications/progress", params)
