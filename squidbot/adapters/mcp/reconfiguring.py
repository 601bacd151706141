"""What other settings mean for the servers that run."""

from collections.abc import Mapping

from squidbot.adapters.mcp.connection import MCPConnection
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.servers import ServerChanges


def named(name: str, entry: MCPServerConfig) -> MCPServerConfig:
    """The entry under its name, which it need not have itself."""
    return entry if entry.name else entry.model_copy(update={"name": name})


def changes_of(before: Mapping[str, MCPConnection], wanted: Mapping[str, MCPServerConfig]) -> ServerChanges:
    """What has to happen for the servers that run to be those that are wanted."""
    kept = {name: before[name].config for name in wanted if name in before}
    same = {name for name, config in kept.items() if config.runs_as(wanted[name])}
    return ServerChanges(
        added=tuple(name for name in wanted if name not in before),
        removed=tuple(name for name in before if name not in wanted),
        changed=tuple(name for name in kept if name not in same),
        adjusted=tuple(name for name in kept if name in same and kept[name] != wanted[name]),
    )
