"""The whole of the settings: `MCPConfig`, all servers, and `Settings`, everything that a settings file says."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from squidbot.config.definitions import with_builtins
from squidbot.config.fields import AuthConfig, BoundsConfig, ToolOverride, TransportName
from squidbot.config.files import display, read_secret, under
from squidbot.config.report import problems_of
from squidbot.config.secrets import secrets_in, shown, worth_hiding
from squidbot.config.sections import (
    AgentSettings,
    AlertSettings,
    AuditSettings,
    GatewaySettings,
    LimitSettings,
    ModelSettings,
    RedisUrl,
    RoleName,
    RoleSettings,
)
from squidbot.config.server import PUBLIC_VARIABLES, MCPServerConfig
from squidbot.config.strict import Count, Seconds, ServerName, Strict
from squidbot.config.variables import Filler, surroundings
from squidbot.core.domain.errors import ConfigError, Problem

__all__ = [
    "AgentSettings",
    "AlertSettings",
    "AuditSettings",
    "AuthConfig",
    "BoundsConfig",
    "GatewaySettings",
    "LimitSettings",
    "MCPConfig",
    "MCPServerConfig",
    "ModelSettings",
    "RoleSettings",
    "Settings",
    "ToolOverride",
    "ToolsSettings",
    "TransportName",
]

_log = logging.getLogger("squidbot.config")
_FILLED_SECTIONS = ("gateway", "audit", "redis", "model", "agent", "alerts")


class MCPConfig(Strict):
    """All servers, each with its name, and the defaults that an entry may leave out."""

    servers: dict[ServerName, MCPServerConfig] = Field(default_factory=dict)
    default_timeout: Seconds = 30.0
    max_retries: Count = 3

    @model_validator(mode="before")
    @classmethod
    def _name_builtins(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "servers" not in data:
            return data
        return {**data, "servers": with_builtins(data["servers"])}

    @model_validator(mode="after")
    def _complete_entries(self) -> "MCPConfig":
        _complete(self.servers, timeout=self.default_timeout, max_retries=self.max_retries)
        return self

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "MCPConfig":
        """The servers of `{"servers": {NAME: {…}}, "default_timeout": …, "max_retries": …}`. Raises ConfigError."""
        given: Any = document  # what was read from a file may be anything
        try:
            return cls.model_validate(dict(given) if isinstance(given, Mapping) else given)
        except ValidationError as error:
            raise ConfigError("The servers cannot be used as they are defined:", problems_of(error, cls)) from None

    def resolved(self, environ: Mapping[str, str] | None = None) -> "MCPConfig":
        """A copy with every enabled entry resolved. Raises ConfigError that names all that is missing."""
        servers, problems = resolve_servers(self.servers, environ, at="servers")
        if problems:
            raise ConfigError("The servers cannot be used as they are defined:", problems)
        return self.model_copy(update={"servers": servers})


class ToolsSettings(Strict):
    """The servers, and how patient squidbot is with those that do not say."""

    default_timeout: Seconds = 30.0
    max_retries: Count = 3
    mcp_servers: dict[ServerName, MCPServerConfig] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _name_builtins(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "mcp_servers" not in data:
            return data
        return {**data, "mcp_servers": with_builtins(data["mcp_servers"])}

    @model_validator(mode="after")
    def _complete_entries(self) -> "ToolsSettings":
        _complete(self.mcp_servers, timeout=self.default_timeout, max_retries=self.max_retries)
        return self


@dataclass(frozen=True, slots=True)
class Origin:
    """Where settings come from; it travels with them and is no part of them."""

    source: Path | None = None
    notes: tuple[str, ...] = ()
    """What was left out or changed when another tool's file was read."""
    definition: "Settings | None" = None
    """The settings as written, if these are their resolved copy."""
    taken: frozenset[str] = frozenset()
    """What variables and files put into the resolved copy."""


class Settings(Strict):
    """Everything that a settings file says; what it does not say has a default that works."""

    schema_url: str | None = Field(default=None, alias="$schema")
    tools: ToolsSettings = Field(default_factory=ToolsSettings)
    roles: dict[RoleName, RoleSettings] = Field(default_factory=dict)
    limits: list[LimitSettings] = Field(default_factory=list)
    gateway: GatewaySettings = Field(default_factory=GatewaySettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    redis: RedisUrl | None = None
    model: ModelSettings | None = None
    agent: AgentSettings = Field(default_factory=AgentSettings)
    alerts: AlertSettings = Field(default_factory=AlertSettings)

    _origin: Origin = PrivateAttr(default_factory=Origin)

    def model_post_init(self, context: Any, /) -> None:
        """Take from whoever validates where this comes from."""
        if isinstance(context, Mapping) and "settings" in context:
            self._origin = context["settings"]

    @property
    def source(self) -> Path | None:
        """The file that this was read from; None for the embedded default."""
        return self._origin.source

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or changed when another tool's file was read."""
        return self._origin.notes

    @property
    def mcp(self) -> MCPConfig:
        """The servers."""
        tools = self.tools
        return MCPConfig(
            servers=dict(tools.mcp_servers), default_timeout=tools.default_timeout, max_retries=tools.max_retries
        )

    @property
    def secrets(self) -> frozenset[str]:
        """Values to blank wherever text is shown."""
        own = self.model_dump(include=set(_FILLED_SECTIONS), exclude_unset=True)
        servers = self.tools.mcp_servers.values()
        return worth_hiding([*self._origin.taken, *secrets_in(own)]).union(*(server.secrets for server in servers))

    def shown(self) -> dict[str, Any]:
        """The settings as written, fit to be shown: references stand, secrets are blanked."""
        definition = self._origin.definition or self
        written = definition.model_dump(mode="json", exclude_unset=True, by_alias=True)
        document = {key: shown(value, key) for key, value in written.items()}
        if definition.tools.mcp_servers:
            servers = {name: server.shown() for name, server in definition.tools.mcp_servers.items()}
            document["tools"] = {**document.get("tools", {}), "mcp_servers": servers}
        return document

    def resolved(self, environ: Mapping[str, str] | None = None) -> "Settings":
        """A copy with every reference filled. Raises ConfigError that names all that is missing."""
        if self._origin.definition is not None:
            return self
        folder = self.source.parent if self.source else None
        servers, problems = resolve_servers(self.tools.mcp_servers, environ, at="tools.mcp_servers")
        filler = Filler(
            surroundings() if environ is None else environ,
            lambda path: read_secret(under(folder, path)),
            public=PUBLIC_VARIABLES,
        )
        written = self.model_dump(include=set(_FILLED_SECTIONS), exclude_unset=True)
        filled = {key: filler.tree(value, key) for key, value in written.items()}
        kept = {key: getattr(self, key) for key in self.model_fields_set - filled.keys() - {"schema_url"}}
        kept["tools"] = self.tools.model_copy(update={"mcp_servers": servers})
        origin = replace(self._origin, definition=self, taken=frozenset(filler.taken))
        problems += filler.problems
        if not filler.problems:
            try:
                settings = Settings.model_validate({**kept, **filled}, context={"settings": origin})
            except ValidationError as error:
                problems += problems_of(error, Settings, show_values=False)
        if problems:
            raise ConfigError(unusable(self.source), problems)
        return settings


def unusable(source: Path | None) -> str:
    """The line above a report."""
    return f"{display(source) if source else 'The settings'} cannot be used:"


def resolve_servers(
    servers: Mapping[str, MCPServerConfig], environ: Mapping[str, str] | None, *, at: str
) -> tuple[dict[str, MCPServerConfig], list[Problem]]:
    """All entries resolved, and all problems. Disabled ones stay as they are; built-ins nobody named may be left out."""
    resolved: dict[str, MCPServerConfig] = {}
    problems: list[Problem] = []
    left_out: list[str] = []
    for name, server in servers.items():
        if not server.enabled:
            resolved[name] = server
            continue
        entry, missing = server.resolve(environ, at=f"{at}.{name}")
        if missing and server.is_optional:
            left_out.append(f"{name!r} ({_reasons(missing)})")
            continue
        resolved[name] = entry
        problems += missing
    if left_out:
        _log.warning("Built-in servers that are left out for want of a variable: %s", ", ".join(left_out))
    return resolved, problems


def _reasons(problems: Iterable[Problem]) -> str:
    return ", ".join(re.sub(r"^the variable '(.*)' is not set$", r"\1", problem.message) for problem in problems)


def _complete(servers: dict[str, MCPServerConfig], *, timeout: float, max_retries: int) -> None:
    """Give each entry its name, and what it left to the defaults of all."""
    for name, server in servers.items():
        left_out = {"timeout": timeout, "max_retries": max_retries}
        update: dict[str, Any] = {key: value for key, value in left_out.items() if key not in server.model_fields_set}
        if server.timeout is None:
            update["timeout"] = timeout
        if server.name != name:
            update["name"] = name
        if update:
            servers[name] = server.model_copy(update=update)
