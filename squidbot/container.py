"""The composition root: every part of squidbot is put together here, from the settings, and nowhere else.

Each provider calls a typed function that builds an inert object; whoever takes one enters and leaves it.
To swap or add a part, override its provider: `Container(transports=...)`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dependency_injector import containers, providers

from squidbot.builders.agent import (
    build_budgets,
    build_language_model,
    build_sampler,
    build_sessions,
    build_shelf,
    find_offered,
    find_ollama,
)
from squidbot.builders.door import (
    build_alerting,
    build_limiter,
    build_metrics,
    build_observers,
    build_permissions,
    build_recorder,
    build_reloader,
    build_service,
    build_store,
    build_tracing,
    reload_settings,
)
from squidbot.builders.gateway import (
    build_admission,
    build_dashboard,
    build_desk,
    build_endpoint,
    build_gateway,
    build_identity,
    build_relay,
    build_settings_watch,
    serve_stdio,
)
from squidbot.builders.ground import (
    build_announcer,
    build_clock,
    build_flow_labels,
    build_hub,
    build_logging,
    build_mapper,
    build_mapping,
    build_mcp_config,
    build_redactor,
    build_settings,
    build_state,
)
from squidbot.builders.servers import (
    build_bridge,
    build_client,
    build_passing,
    build_registry,
    build_schemas,
    build_transports,
    forget_sign_in,
)

if TYPE_CHECKING:
    # Passed on, for the signatures of those who are handed one.
    from squidbot.adapters.mcp.client import MCPClient as MCPClient  # noqa: PLC0414
    from squidbot.adapters.mcp.transport import SignIn
    from squidbot.adapters.store.store import SQLStore as SQLStore  # noqa: PLC0414
    from squidbot.adapters.system.sessions import Session as Session  # noqa: PLC0414
    from squidbot.config.schema import MCPConfig, Settings
    from squidbot.core.services.bridge import MCPToolBridge
    from squidbot.core.services.door import AgentMCPService as AgentMCPService  # noqa: PLC0414


def _nothing(_words: str) -> None: ...


class Container(containers.DeclarativeContainer):
    """All parts of one process."""

    settings_file: providers.Provider[Path | None] = providers.Object(None)
    lazy: providers.Provider[bool] = providers.Object(provides=False)
    """Whether servers start at first use; until then their tools are those of the last list."""
    sign_in: "providers.Provider[SignIn | None]" = providers.Object(None)
    roots: providers.Provider[Sequence[Path] | None] = providers.Object(None)
    """The folders that servers may know somebody works in."""
    converses: providers.Provider[bool] = providers.Object(provides=False)
    """Whether calls have somebody at their other end who may be asked: then servers are told that they may ask."""

    secrets: providers.Provider[set[str]] = providers.Singleton(set)
    state = providers.Singleton(build_state)
    redactor = providers.Singleton(build_redactor, secrets, state)
    logging = providers.Callable(build_logging, redactor)
    settings = providers.Singleton(build_settings, settings_file, secrets)
    mcp_config = providers.Singleton(build_mcp_config, settings)
    clock = providers.Singleton(build_clock)
    hub = providers.Singleton(build_hub)
    announcer = providers.Singleton(build_announcer, hub)

    transports = providers.Singleton(build_transports)
    registry = providers.Singleton(build_registry)
    schemas = providers.Singleton(build_schemas)
    client = providers.Singleton(
        build_client,
        mcp_config,
        announcer=announcer,
        transports=transports,
        registry=registry,
        schemas=schemas,
        state=state,
        lazy=lazy,
        sign_in=sign_in,
        roots=roots,
        converses=converses,
    )
    bridge = providers.Singleton(build_bridge, client)
    forget_sign_in = providers.Callable(forget_sign_in, mcp_config, state=state)

    shelf = providers.Singleton(build_shelf, state)
    sessions = providers.Singleton(build_sessions, state)
    language_model = providers.Callable(build_language_model)
    budgets = providers.Callable(build_budgets, settings)
    sampler = providers.Singleton(build_sampler, settings)
    find_ollama = providers.Callable(find_ollama)
    find_offered = providers.Callable(find_offered)

    mapper = providers.Singleton(build_mapper, settings)
    mapping_of = providers.Callable(build_mapping)
    flow_labels = providers.Singleton(build_flow_labels, mcp_config)
    store = providers.Singleton(build_store, settings, state)
    limiter = providers.Singleton(build_limiter, settings, clock, state, lazy=lazy)
    metrics = providers.Singleton(build_metrics)
    tracing = providers.Singleton(build_tracing, lazy=lazy)
    alerting = providers.Singleton(build_alerting, settings, store=store, clock=clock, announcer=announcer)
    recorder = providers.Singleton(
        build_recorder,
        store,
        clock=clock,
        redactor=redactor,
        observers=providers.Callable(
            build_observers, lazy=lazy, metrics=metrics.provider, alerting=alerting, announcer=announcer
        ),
    )
    permissions = providers.Singleton(build_permissions, mapper, store, clock=clock)
    service = providers.Singleton(
        build_service,
        client,
        registry=registry,
        schemas=schemas,
        permissions=permissions,
        store=store,
        limiter=limiter,
        recorder=recorder,
        alerting=alerting,
        tracing=tracing,
        hub=hub,
    )
    reloader = providers.Singleton(
        build_reloader,
        settings,
        client=client,
        secrets=secrets,
        permissions=permissions,
        limiter=limiter,
        alerting=alerting,
        store=store,
        announcer=announcer,
        recorder=recorder,
        hub=hub,
    )
    reload = providers.Callable(reload_settings, reloader, settings_file)
    identity = providers.Singleton(build_identity, settings, clock)
    admission = providers.Singleton(
        build_admission, store, recorder=recorder, clock=clock, permissions=permissions, hub=hub, identity=identity
    )
    relay = providers.Singleton(build_relay, settings, hub)
    passing = providers.Callable(build_passing)
    serve_stdio = providers.Callable(serve_stdio, service, hub)
    say: "providers.Provider[Callable[[str], None]]" = providers.Object(_nothing)
    """Tells the person at the terminal what goes on."""
    host: providers.Provider[str | None] = providers.Object(None)
    """Where the gateway listens, if not where the settings say."""
    settings_watch = providers.Singleton(
        build_settings_watch, reloader, settings=settings, file=settings_file, clock=clock
    )
    endpoint = providers.Singleton(build_endpoint, service, hub=hub, store=store)
    desk = providers.Singleton(
        build_desk,
        service,
        client=client,
        store=store,
        admission=admission,
        hub=hub,
        clock=clock,
        watch=settings_watch,
    )
    dashboard = providers.Singleton(build_dashboard, desk, admission=admission, hub=hub, clock=clock, store=store)
    gateway = providers.Singleton(
        build_gateway,
        service,
        settings=settings,
        client=client,
        relay=relay,
        endpoint=endpoint,
        dashboard=dashboard,
        desk=desk,
        admission=admission,
        schemas=schemas,
        metrics=metrics,
        watch=settings_watch,
        sampler=sampler,
        store=store,
        state=state,
        host=host,
        say=say,
    )


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


def create_agent_service(settings: "Settings | None" = None) -> "AgentMCPService":
    """The guarded door over `settings`, else over those that are found. Enter it with `async with`; it opens nothing before."""
    container = Container() if settings is None else Container(settings=settings.resolved())
    return container.service()
