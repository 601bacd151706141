"""What one fault is, where it is served, and what must come of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from tests.faults.scene import Scene

Transport: TypeAlias = Literal["stdio", "sse", "websocket", "http", "json"]
"""`http` and `json` are the two ways in which streamable HTTP answers: a stream of events, a body."""
TRANSPORTS: tuple[Transport, ...] = ("stdio", "sse", "websocket", "http", "json")
Check: TypeAlias = Callable[["Scene"], Awaitable[str | None]]
"""Looks at what is left of the scene; what is wrong, if anything is."""

STARTUP = 2.0
REQUEST = 1.5
"""Seconds for a connection and for a call, where a case does not say otherwise."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One fault. The defaults are the commonest: it connects, the call fails, the next one works."""

    fault: str
    row: int
    """The kind of fault, by its number in docs/faults.md."""
    over: tuple[Transport, ...] = TRANSPORTS
    argument: str = ""
    sampled: tuple[Transport, ...] = ()
    """Where it is tried unless everything is; empty means wherever it can be."""
    connects: bool = True
    answers: Literal["ok", "error", "either"] = "error"
    says: str = ""
    """A pattern that the error, or the answer, must have."""
    at_once: bool = False
    """The error must not wait for the deadline."""
    then: Literal["works", "returns", "nothing"] = "works"
    """What becomes of the next call: it works, it does once the server is back, or it does not matter."""
    recovery: float = 5.0
    """Seconds within which it is back."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    entry: Callable[[Transport], Mapping[str, Any]] | None = None
    """The server's whole entry, for faults that are none of a server's."""
    era: Literal["legacy", "modern"] = "legacy"
    secure: bool = False
    check: Check | None = None

    @property
    def name(self) -> str:
        parts = [self.fault, self.argument, "modern" if self.era == "modern" else ""]
        return "-".join(part for part in parts if part)

    def setting(self, name: str, usual: float) -> float:
        return float(self.settings.get(name, usual))


@dataclass(frozen=True)
class Cell:
    """One case over one transport."""

    case: Case
    transport: Transport

    def __str__(self) -> str:
        return f"{self.case.name}-{self.transport}"
