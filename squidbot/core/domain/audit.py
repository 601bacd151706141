"""What is recorded: who tried what, what came of it, and under which grants."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from squidbot.core.domain.callers import Caller, Origin
from squidbot.core.domain.tools import ToolId, ToolResult

Outcome: TypeAlias = Literal[
    "ok", "tool_error", "server_error", "refused", "limited", "timeout", "cancelled", "unknown"
]
"""How an attempt ended; `unknown` if squidbot itself ended before it was known."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

RecordKind: TypeAlias = Literal[
    "call",
    "prompt",
    "resource",
    "completion",
    "subscription",
    "question",
    "request",
    "sign_in",
    "grant",
    "settings",
    "prune",
]
"""What was attempted: a tool's call or one of its neighbours, a server's own question, a request that was none of these
and could not be served, or a change of who may do what."""
RECORD_KINDS: tuple[RecordKind, ...] = get_args(RecordKind)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One request on its way down."""

    id: str
    caller: Caller
    tool: ToolId
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Intent:
    """What is about to happen: on disk before anything reaches a server."""

    id: str
    timestamp: str
    """UTC, as in `2026-11-18T10:56:31.123456Z`: sorts as text."""
    squad_member_id: str | None
    role: str
    server: str
    tool: str
    arguments: str
    """JSON, redacted and cut."""
    origin: Origin
    revision: str
    """Of the grants that decided."""
    kind: RecordKind = "call"


@dataclass(frozen=True, slots=True)
class ToolExecution:
    """One attempt and its end: a row of `tool_execution_logs`. `sequence` is 0 until the log has given one."""

    id: str
    timestamp: str
    squad_member_id: str | None
    role: str
    server: str
    tool: str
    arguments: str
    result: str | None
    """JSON, redacted and cut."""
    success: bool
    error_message: str | None
    origin: Origin
    outcome: Outcome
    duration: float
    """Seconds."""
    revision: str
    kind: RecordKind = "call"
    sequence: int = 0
    chain: str = ""

    @property
    def tool_id(self) -> ToolId:
        return ToolId(self.server, self.tool)


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records are wanted; what is None does not matter. Globs in role, server and tool."""

    role: str | None = None
    server: str | None = None
    tool: str | None = None
    outcome: Outcome | None = None
    kind: RecordKind | None = None
    since: str | None = None
    """A timestamp; that one and later."""
    until: str | None = None
    """A timestamp; earlier than that one."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether the record is whole: `first_bad` names the first row that is not, and why."""

    ok: bool
    records: int
    chains: int
    first_bad: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What one role made of one tool."""

    role: str
    server: str
    tool: str
    calls: int
    errors: int
    refused: int
    mean_seconds: float
    worst_seconds: float


@dataclass(frozen=True, slots=True)
class GrantChange:
    """A grant in the database: it stands above the settings, for this role, server and tool."""

    role: str
    server: str
    tool: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class Grants:
    """All grants of the database, and the number that goes up with every change of them."""

    changes: tuple[GrantChange, ...] = field(default=())
    version: int = 0


RECORD_COLUMNS = (
    "id",
    "timestamp",
    "squad_member_id",
    "role",
    "server",
    "tool",
    "arguments",
    "result",
    "success",
    "error_message",
    "sequence",
    "origin",
    "outcome",
    "duration",
    "revision",
    "kind",
)


def record_json(record: ToolExecution) -> dict[str, Any]:
    """A record as programs read it: by the names of its columns, arguments and result as the JSON that they are."""
    row = {name: getattr(record, name) for name in RECORD_COLUMNS}
    return {**row, "arguments": _parsed(record.arguments), "result": _parsed(record.result)}


def outcome_of(result: ToolResult) -> Outcome:
    """How a call ended, from what it answered."""
    if not result.is_error:
        return "ok"
    match result.failure.kind if result.failure else "tool":
        case "tool":
            return "tool_error"
        case "timeout":
            return "timeout"
        case _:
            return "server_error"


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
