"""The names that programs import from squidbot."""

import subprocess
import sys

import pytest

import squidbot

PROMISED = {
    "AgentMCPService",
    "Caller",
    "MCPToolMapper",
    "NotRecorded",
    "create_agent_service",
    "load_tool_mapping",
    "AudioContent",
    "BinaryContent",
    "ConfigError",
    "DEFAULT_MCP_SERVERS",
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
    "create_mcp_bridge",
    "get_default_mcp_config",
}


def test_the_public_names_are_these_and_no_others() -> None:
    """A name is a promise: one is neither lost nor given away by accident."""
    assert set(squidbot.__all__) == PROMISED
    assert dir(squidbot) == sorted(PROMISED)


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_every_public_name_is_there(name: str) -> None:
    """The table of homes is written by hand, so each line of it is walked once."""
    assert getattr(squidbot, name) is getattr(squidbot, name)


def test_a_name_that_is_not_there_is_an_ordinary_attribute_error() -> None:
    """Tools that look around in modules expect nothing else."""
    with pytest.raises(AttributeError, match="has no attribute 'MCPManager'"):
        _ = squidbot.MCPManager


def test_importing_squidbot_is_cheap() -> None:
    """A program that only wants an error class must not wait for the protocol."""
    code = "import sys, squidbot; squidbot.ToolResult, squidbot.ConfigError; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"mcp", "pydantic", "click", "rich", "loguru", "httpx2", "anyio", "dependency_injector"}
