"""Roles of the settings, or of a role-mapping file, as the core decides by them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from squidbot.config import documents
from squidbot.config.imports import import_document, kind_of_document
from squidbot.config.load import read_settings
from squidbot.config.report import problems_of
from squidbot.config.schema import RoleSettings, Settings, unusable
from squidbot.config.sections import RoleName
from squidbot.core.domain.errors import ConfigError
from squidbot.core.domain.roles import Grant, MCPToolMapper, Role, shipped_roles

_ROLES = TypeAdapter(dict[RoleName, RoleSettings])


def mapper_of(settings: Settings) -> MCPToolMapper:
    """The shipped roles with what the settings add to them or put in their place."""
    servers = {name: server.shown() for name, server in settings.tools.mcp_servers.items()}
    return MCPToolMapper(_with(shipped_roles(), settings.roles), servers)


def load_tool_mapping(path: str | Path) -> MCPToolMapper:
    """The roles of a role-mapping file (`version`, `mcp_servers`, `roles`): those and no others.

    A settings file of squidbot is taken too; then the shipped roles are part of it. Raises ConfigError.
    """
    file = Path(path).expanduser()
    if not file.exists():
        raise ConfigError(f"there is no file {str(path)!r} to read roles from")
    document = documents.read(file).value
    if kind_of_document(document) != "roles":
        return mapper_of(read_settings(file))
    imported = import_document(document, kind="roles")
    try:
        roles = _ROLES.validate_python(imported.roles)
    except ValidationError as error:
        raise ConfigError(unusable(file), problems_of(error, Settings, at="roles")) from None
    return MCPToolMapper(_with({}, roles), _servers(document.get("mcp_servers")))


def _with(known: dict[str, Role], given: Mapping[str, RoleSettings]) -> dict[str, Role]:
    roles = dict(known)
    for name, settings in given.items():
        before = None if settings.replace else roles.get(name)
        own = tuple(
            Grant(server, grant.tool, tuple((argument, tuple(globs)) for argument, globs in grant.when.items()))
            for server, grants in settings.tools.items()
            for grant in grants
        )
        description = settings.description or (before.description if before else "")
        roles[name] = Role(name, description, (*(before.grants if before else ()), *own))
    return roles


def _servers(entries: Any) -> dict[str, Mapping[str, Any]]:
    """What a mapping file says of each server, as it says it."""
    if isinstance(entries, Mapping):
        return {str(name): dict(entry) if isinstance(entry, Mapping) else {} for name, entry in entries.items()}
    named = [entry for entry in entries or [] if isinstance(entry, Mapping)]
    return {str(entry.get("name")): {key: part for key, part in entry.items() if key != "name"} for entry in named}
