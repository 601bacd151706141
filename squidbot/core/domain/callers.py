"""Who asks: built once, at the edge, and carried down with every call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Origin: TypeAlias = Literal["cli", "agent", "library", "mcp", "api", "dashboard", "system"]
"""By which way somebody came in."""

OPERATOR = "operator"
"""The person at the local command line: every tool of their own settings, and never by token or over HTTP."""
RESERVED_ROLES = frozenset({OPERATOR, "admin", "auditor"})
"""Names that no role of the settings may have: the first is a person, the others are rights, not roles."""
_LOCAL: frozenset[Origin] = frozenset({"cli", "agent"})


@dataclass(frozen=True, slots=True)
class Caller:
    """A role, the member who acts in it, and the way they came."""

    role: str
    member: str | None = None
    origin: Origin = "library"
    tenant: str | None = None

    @property
    def is_operator(self) -> bool:
        """Whether this is the person whose settings these are; nobody from afar ever is."""
        return self.role == OPERATOR and self.origin in _LOCAL


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a client of the stateless era says with its request, for a server of that era.

    Such a client is asked by the answer to its request, and comes back with another: nobody waits in between.
    """

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """What it can be asked for, as on the wire."""
    log_level: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    """What it came back with: `inputResponses`, and the server's own `requestState`."""
