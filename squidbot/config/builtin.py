"""The servers that squidbot knows by itself, as objects ready for use."""

from collections.abc import Mapping

from squidbot.config.definitions import BUILTIN_NAMES, builtin_entries
from squidbot.config.schema import MCPConfig, MCPServerConfig
from squidbot.config.server import ServerOrigin

__all__ = ["BUILTIN_NAMES", "DEFAULT_MCP_SERVERS", "get_default_mcp_config"]


def get_default_mcp_config(environ: Mapping[str, str] | None = None) -> MCPConfig:
    """Every built-in server that starts something that exists, as fresh objects.

    Nobody has named them, so one whose variable is not set is left out when they are resolved, with a warning.
    """
    context = {"server": ServerOrigin(optional=True)}
    return MCPConfig.model_validate({"servers": builtin_entries(environ)}, context=context)


DEFAULT_MCP_SERVERS: dict[str, MCPServerConfig] = dict(get_default_mcp_config().servers)
