"""The servers of the settings, and the client that connects them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from squidbot.adapters.mcp.client import MCPClient
    from squidbot.adapters.mcp.passing import Passing
    from squidbot.adapters.mcp.transport import SignIn, Transport
    from squidbot.config.schema import MCPConfig
    from squidbot.core.ports import (
        SchemaCheck,
        ToolRegistry,
    )
    from squidbot.core.services.announcing import Announcer
    from squidbot.core.services.bridge import MCPToolBridge


def build_transports() -> "Mapping[str, Transport]":
    """The table that picks how bytes move."""
    from squidbot.adapters.mcp.transports.table import TRANSPORTS

    return dict(TRANSPORTS)


def build_registry() -> "ToolRegistry":
    """The index of all tools."""
    from squidbot.adapters.registry.memory import InMemoryToolRegistry

    return InMemoryToolRegistry()


def build_schemas() -> "SchemaCheck":
    """What holds arguments and structured results against their schemas."""
    from squidbot.adapters.schemas.checker import JSONSchemaCheck

    return JSONSchemaCheck()


def build_client(
    config: "MCPConfig",
    *,
    announcer: "Announcer",
    transports: "Mapping[str, Transport]",
    registry: "ToolRegistry",
    schemas: "SchemaCheck",
    state: Path,
    lazy: bool,
    sign_in: "SignIn | None",
    roots: "Sequence[Path] | None",
    converses: bool,
) -> "MCPClient":
    """The client of all servers; their log messages go into ours."""
    from squidbot.adapters.mcp.client import MCPClient
    from squidbot.adapters.telemetry.logging import log_server_message

    return MCPClient(
        config,
        on_log=log_server_message,
        on_event=announcer.event,
        transports=transports,
        registry=registry,
        schemas=schemas,
        state=state,
        lazy=lazy,
        sign_in=sign_in,
        roots=roots,
        converses=converses,
    )


def build_bridge(client: "MCPClient") -> "MCPToolBridge":
    """The tools under the names, and with the flat parameters, that agents know."""
    from squidbot.core.services.bridge import MCPToolBridge

    return MCPToolBridge(client)


def forget_sign_in(config: "MCPConfig", *, server: str, state: Path) -> bool:
    """Drop the tokens kept for `server`; whether there were any."""
    from squidbot.adapters.mcp.oauth import forget

    return forget(config.servers[server], state)


def build_passing(
    url: str, *, token: "Callable[[], Awaitable[str]]", say: "Callable[[bytes], Awaitable[None]]"
) -> "Passing":
    """What passes a client's lines on to a running gateway."""
    from squidbot.adapters.mcp.passing import Passing

    return Passing(url, token=token, say=say)
