"""The composition root: every part of squidbot is built here, from the settings, and nowhere else.

Each provider calls a typed function that builds an inert object; whoever takes one enters and leaves it.
To swap or add a part, override its provider: `Container(transports=...)`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dependency_injector import containers, providers

if TYPE_CHECKING:
    # Passed on, for the signatures of those who are handed one.
    from squidbot.adapters.mcp.client import MCPClient as MCPClient  # noqa: PLC0414
    from squidbot.adapters.mcp.transport import SignIn, Transport
    from squidbot.config.schema import MCPConfig, Settings
    from squidbot.core.ports import SchemaCheck, ToolRegistry
    from squidbot.core.services.bridge import MCPToolBridge


def build_logging(secrets: set[str], *, verbosity: int = 0) -> None:
    """Send the log to stderr."""
    from squidbot.adapters.telemetry.logging import set_up_logging

    set_up_logging(verbosity=verbosity, secrets=secrets)


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
    transports: "Mapping[str, Transport]",
    registry: "ToolRegistry",
    schemas: "SchemaCheck",
    state: Path,
    lazy: bool,
    sign_in: "SignIn | None",
) -> "MCPClient":
    """The client of all servers; their log messages go into ours."""
    from squidbot.adapters.mcp.client import MCPClient
    from squidbot.adapters.telemetry.logging import log_server_message

    return MCPClient(
        config,
        on_log=log_server_message,
        transports=transports,
        registry=registry,
        schemas=schemas,
        state=state,
        lazy=lazy,
        sign_in=sign_in,
    )


def build_bridge(client: "MCPClient") -> "MCPToolBridge":
    """The tools under the names, and with the flat parameters, that agents know."""
    from squidbot.core.services.bridge import MCPToolBridge

    return MCPToolBridge(client)


def forget_sign_in(config: "MCPConfig", *, server: str, state: Path) -> bool:
    """Drop the tokens kept for `server`; whether there were any."""
    from squidbot.adapters.mcp.oauth import forget

    return forget(config.servers[server], state)


class Container(containers.DeclarativeContainer):
    """All parts of one process."""

    settings_file: providers.Provider[Path | None] = providers.Object(None)
    lazy: providers.Provider[bool] = providers.Object(provides=False)
    """Whether servers start at first use; until then their tools are those of the last list."""
    sign_in: "providers.Provider[SignIn | None]" = providers.Object(None)

    secrets: providers.Provider[set[str]] = providers.Singleton(set)
    logging = providers.Callable(build_logging, secrets)
    settings = providers.Singleton(build_settings, settings_file, secrets)
    mcp_config = providers.Singleton(build_mcp_config, settings)
    state = providers.Singleton(build_state)

    transports = providers.Singleton(build_transports)
    registry = providers.Singleton(build_registry)
    schemas = providers.Singleton(build_schemas)
    client = providers.Singleton(
        build_client,
        mcp_config,
        transports=transports,
        registry=registry,
        schemas=schemas,
        state=state,
        lazy=lazy,
        sign_in=sign_in,
    )
    bridge = providers.Singleton(build_bridge, client)
    forget_sign_in = providers.Callable(forget_sign_in, mcp_config, state=state)


async def create_mcp_bridge(config: "MCPConfig | None" = None) -> "MCPToolBridge":
    """A bridge over what `config`, else the settings, else the defaults have; what cannot start is skipped.

    The bridge owns the connections: leave it with `async with`.
    """
    container = Container() if config is None else Container(mcp_config=config)
    client: Any = container.client()
    try:
        await client.connect_all()
    except BaseException:
        await client.disconnect_all()
        raise
    return container.bridge()
