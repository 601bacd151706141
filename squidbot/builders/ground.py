"""What everything stands on: settings, secrets, log, state, clock, roles."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from squidbot.config.schema import MCPConfig, Settings
    from squidbot.core.domain.redaction import Redactor
    from squidbot.core.domain.role_review import Leg
    from squidbot.core.domain.roles import MCPToolMapper
    from squidbot.core.ports import (
        Clock,
    )
    from squidbot.core.services.announcing import Announcer
    from squidbot.core.services.hub import Hub


def build_redactor(secrets: set[str], state: Path) -> "Redactor":
    """What takes secrets out, of the log, the record, errors and the screen alike."""
    from squidbot.adapters.system.salt import kept_salt
    from squidbot.core.domain.redaction import Redactor

    return Redactor(secrets, salt=kept_salt(state))


def build_logging(redactor: "Redactor", *, verbosity: int = 0) -> None:
    """Send the log to stderr."""
    from squidbot.adapters.telemetry.logging import set_up_logging

    set_up_logging(verbosity=verbosity, redactor=redactor)


def build_settings(file: Path | None, secrets: set[str]) -> "Settings":
    """The settings of `file`, else of the one that is found, else the embedded default. Raises ConfigError."""
    from squidbot.config.load import load_settings

    settings = load_settings(file)
    secrets.update(settings.secrets)
    return settings


def build_mcp_config(settings: "Settings") -> "MCPConfig":
    """The servers of the settings."""
    return settings.mcp


def build_state() -> Path:
    """The folder in which squidbot remembers."""
    from squidbot.config.state import state_folder

    return state_folder()


def build_clock() -> "Clock":
    """What tells the time."""
    from squidbot.adapters.system.clock import SystemClock

    return SystemClock()


def build_hub() -> "Hub":
    """Where everybody in this process hears what happens."""
    from squidbot.core.services.hub import Hub

    return Hub()


def build_announcer(hub: "Hub") -> "Announcer":
    """What tells the hub of servers, calls and alerts."""
    from squidbot.core.services.announcing import Announcer

    return Announcer(hub)


def build_mapper(settings: "Settings") -> "MCPToolMapper":
    """The roles of the settings."""
    from squidbot.config.roles import mapper_of

    return mapper_of(settings)


def build_mapping(file: Path) -> "MCPToolMapper":
    """The roles of another file. Raises ConfigError."""
    from squidbot.config.roles import load_tool_mapping

    return load_tool_mapping(file)


def build_flow_labels(config: "MCPConfig") -> "dict[str, dict[Leg, list[str]]]":
    """What each server's tools do with data."""
    return {
        name: {"untrusted": entry.flows.untrusted, "private": entry.flows.private, "egress": entry.flows.egress}
        for name, entry in config.servers.items()
    }
