"""The state of a server, and what can be heard from one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

ServerState: TypeAlias = Literal["disabled", "idle", "connecting", "ready", "degraded", "failed"]
"""idle: not started yet; degraded: was ready, is coming back; failed: never came up, is tried again slowly."""

EventKind: TypeAlias = Literal[
    "state", "tools_changed", "prompts_changed", "resources_changed", "resource_updated", "notification", "exception"
]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How one server is, since when, and why."""

    name: str
    transport: str
    state: ServerState
    tools: int | None = None
    protocol: str | None = None
    error: str | None = None
    hint: str | None = None
    since: float = 0.0
    """Seconds on the clock of the event loop's machine (`time.time`) at which this state began."""
    instructions: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    """What the server calls itself: name, version, title."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """Oddities seen on the wire: noise, dropped answers, dropped notifications, restarts, declined questions."""
    stderr: tuple[str, ...] = ()
    """The last lines that the server wrote beside its messages: for people, never for a model."""


@dataclass(frozen=True, slots=True)
class ServerChanges:
    """What other settings changed among the servers, by name; what is not named stays as it was, connected."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Ended and started anew."""
    adjusted: tuple[str, ...] = ()
    """Only what we say of them, or how patient we are: they stay connected."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """Something that happened on a server's side, for whoever subscribed."""

    server: str
    kind: EventKind
    method: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    error: BaseException | None = None
    state: ServerState | None = None


LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""The eight levels of the protocol."""

LOG_SEVERITY: Mapping[LogLevel, int] = {
    "debug": 10,
    "info": 20,
    "notice": 25,
    "warning": 30,
    "error": 40,
    "critical": 50,
    "alert": 52,
    "emergency": 54,
}
"""Their place among the levels of our own log."""


@dataclass(frozen=True, slots=True)
class ServerLog:
    """One log message of a server."""

    server: str
    level: LogLevel
    data: Any
    logger: str | None = None
