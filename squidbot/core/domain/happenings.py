"""What happens while a gateway runs, as values for whoever listens: clients, the dashboard, other gateways."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Topic: TypeAlias = Literal[
    "tools",  # a server's tools changed: `server`
    "prompts",
    "resources",
    "resource_updated",  # `server`, data: uri
    "state",  # a server's state changed: `server`, data: state
    "grants",  # grants or roles changed: who may see what is to be decided anew
    "settings",  # the settings were taken up anew; data: ok, and the report if they were not
    "tokens",  # a token was made or revoked; data: id
    "call",  # an attempt ended; data: the record, as `audit tail --json` has it
    "progress",  # data: record, role, server, tool, progress, total, message
    "alert",  # data: the alert
    "relay",  # something for one client session that another gateway holds; data: session, message
]


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened; the data can be written as JSON."""

    topic: Topic
    server: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
