"""What people are shown of a gateway, by page or by API: values that were looked up once and do not change."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from squidbot.core.domain.audit import ToolExecution
from squidbot.core.domain.errors import InvalidArguments, Problem
from squidbot.core.domain.roles import Decision, Role
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.tools import ToolDefinition, ToolId, ToolResult


@dataclass(frozen=True, slots=True)
class Overview:
    """The gateway at a glance. `ready` says whether at least one server can be used, or there are none."""

    version: str
    started: float
    """Seconds since 1970."""
    ready: bool
    servers: Mapping[str, int]
    """How many servers are in which state."""
    tools: int
    roles: int
    revision: str
    under_way: int
    """Calls that have begun and not ended."""
    listeners: int


@dataclass(frozen=True, slots=True)
class ServerView:
    """One server: how it is, and its last words, without secrets."""

    status: ServerStatus
    stderr: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MayUse:
    """A role that may use a tool, by which rule, and what its arguments must meet (`when`, in words; empty if nothing)."""

    role: str
    rule: str | None
    when: str


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool: what it is, roughly how many tokens its definition costs a model, and who may use it."""

    definition: ToolDefinition
    tokens: int
    roles: tuple[MayUse, ...]
    read_only: bool


@dataclass(frozen=True, slots=True)
class RoleView:
    """One role: what it is granted as written, and which tools that is with the servers there are."""

    role: Role
    granted: Mapping[str, list[str]]
    callable: tuple[ToolDefinition, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Grid:
    """All roles against all tools; each cell has the decision and the rule that made it."""

    roles: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    cells: Mapping[tuple[str, ToolId], Decision]
    conditions: Mapping[tuple[str, ToolId], str]
    """Where a yes holds for some arguments only: for which, in words."""
    revision: str


@dataclass(frozen=True, slots=True)
class Granted:
    """A change of grants that was made: its record, and the revision of the grants from then on."""

    role: str
    server: str
    tool: str
    enabled: bool
    revision: str
    record: str


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Records, newest first; `next` leads to older ones, None if there are none."""

    records: tuple[ToolExecution, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """What happened in a span of time that begins at `begin` (seconds since 1970). Times are seconds, None without calls."""

    begin: float
    calls: int = 0
    errors: int = 0
    refused: int = 0
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """Spans of equal length (`seconds`), without gaps, oldest first."""

    seconds: int
    buckets: tuple[Bucket, ...]


@dataclass(frozen=True, slots=True)
class Called:
    """What came of a tool that somebody called here."""

    definition: ToolDefinition
    result: ToolResult
    duration_ms: float


@dataclass(frozen=True, slots=True)
class SettingsReport:
    """Which settings are in force, since when, and what is wrong with a newer file that was refused."""

    file: str | None = None
    """None for the embedded default."""
    since: str | None = None
    ok: bool = True
    problems: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def written_cursor(places: Mapping[str, int]) -> str:
    """How far each chain was read, as a word for the next question."""
    text = json.dumps(dict(places), separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii").rstrip("=")


def read_cursor(cursor: str) -> dict[str, int]:
    """The way back. Raises InvalidArguments."""
    try:
        found = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(type(place) is int and 0 <= place < 2**62 for place in found.values()):
        problem = Problem("cursor", "is none that a page of records ended with")
        raise InvalidArguments("the cursor cannot be read:", [problem])
    return found
