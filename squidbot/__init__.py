"""One guarded door between a team of AI agents and every MCP server.

Importing this is cheap: each name is loaded when it is first used.
"""

from squidbot._version import __version__

TYPE_CHECKING = False  # type checkers take it for true; typing itself costs more than all else that `--version` loads
if TYPE_CHECKING:
    from squidbot.adapters.mcp.client import MCPClient
    from squidbot.adapters.mcp.connection import MCPConnection
    from squidbot.adapters.mcp.tool import MCPToolAdapter
    from squidbot.config.builtin import DEFAULT_MCP_SERVERS, get_default_mcp_config
    from squidbot.config.roles import load_tool_mapping
    from squidbot.config.schema import MCPConfig, MCPServerConfig
    from squidbot.container import create_agent_service, create_mcp_bridge
    from squidbot.core.domain.callers import Caller
    from squidbot.core.domain.content import AudioContent, BinaryContent, ImageContent, TextContent
    from squidbot.core.domain.errors import (
        ConfigError,
        InvalidArguments,
        MCPConnectionError,
        MCPProtocolError,
        MCPRequestRefused,
        NotRecorded,
        RateLimited,
        SquidbotError,
        ToolNotPermitted,
        UnknownTool,
    )
    from squidbot.core.domain.roles import MCPToolMapper
    from squidbot.core.domain.tools import ToolDefinition, ToolResult
    from squidbot.core.ports import ToolPort, ToolRegistry
    from squidbot.core.services.bridge import MCPToolBridge
    from squidbot.core.services.door import AgentMCPService

__all__ = [
    "DEFAULT_MCP_SERVERS",
    "AgentMCPService",
    "AudioContent",
    "BinaryContent",
    "Caller",
    "ConfigError",
    "ImageContent",
    "InvalidArguments",
    "MCPClient",
    "MCPConfig",
    "MCPConnection",
    "MCPConnectionError",
    "MCPProtocolError",
    "MCPRequestRefused",
    "MCPServerConfig",
    "MCPToolAdapter",
    "MCPToolBridge",
    "MCPToolMapper",
    "NotRecorded",
    "RateLimited",
    "SquidbotError",
    "TextContent",
    "ToolDefinition",
    "ToolNotPermitted",
    "ToolPort",
    "ToolRegistry",
    "ToolResult",
    "UnknownTool",
    "__version__",
    "create_agent_service",
    "create_mcp_bridge",
    "get_default_mcp_config",
    "load_tool_mapping",
]

_HOMES = {
    "squidbot.adapters.mcp.client": ("MCPClient",),
    "squidbot.adapters.mcp.tool": ("MCPToolAdapter",),
    "squidbot.adapters.mcp.connection": ("MCPConnection",),
    "squidbot.config.builtin": ("DEFAULT_MCP_SERVERS", "get_default_mcp_config"),
    "squidbot.config.schema": ("MCPConfig", "MCPServerConfig"),
    "squidbot.config.roles": ("load_tool_mapping",),
    "squidbot.container": ("create_agent_service", "create_mcp_bridge"),
    "squidbot.core.domain.callers": ("Caller",),
    "squidbot.core.domain.content": ("AudioContent", "BinaryContent", "ImageContent", "TextContent"),
    "squidbot.core.domain.errors": (
        "ConfigError",
        "InvalidArguments",
        "MCPConnectionError",
        "MCPProtocolError",
        "MCPRequestRefused",
        "NotRecorded",
        "RateLimited",
        "SquidbotError",
        "ToolNotPermitted",
        "UnknownTool",
    ),
    "squidbot.core.domain.roles": ("MCPToolMapper",),
    "squidbot.core.domain.tools": ("ToolDefinition", "ToolResult"),
    "squidbot.core.ports": ("ToolPort", "ToolRegistry"),
    "squidbot.core.services.bridge": ("MCPToolBridge",),
    "squidbot.core.services.door": ("AgentMCPService",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    globals()[name] = getattr(importlib.import_module(home), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
