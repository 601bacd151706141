"""The guarded door with its record, limits and watch, and what takes up other settings."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from squidbot.adapters.mcp.client import MCPClient
    from squidbot.adapters.store.store import SQLStore
    from squidbot.adapters.telemetry.metrics import Metrics
    from squidbot.config.schema import Settings
    from squidbot.core.domain.redaction import Redactor
    from squidbot.core.domain.roles import MCPToolMapper
    from squidbot.core.ports import (
        AlertSink,
        CallObserver,
        Clock,
        RateLimiter,
        SchemaCheck,
        ToolRegistry,
        Tracing,
    )
    from squidbot.core.services.alerting import Alerting
    from squidbot.core.services.announcing import Announcer
    from squidbot.core.services.door import AgentMCPService
    from squidbot.core.services.hub import Hub
    from squidbot.core.services.permissions import Permissions
    from squidbot.core.services.recording import Recorder
    from squidbot.core.services.reloading import Limits, Reloader


def build_store(settings: "Settings", state: Path) -> "SQLStore":
    """The record of all calls, with the grants that were made while running."""
    from squidbot.adapters.store.store import SQLStore

    return SQLStore(settings.audit.url, state=state)


def build_limiter(settings: "Settings", clock: "Clock", state: Path, *, lazy: bool) -> "RateLimiter":
    """What counts calls: in this process, with other commands if it is one (`lazy`), or in Redis for several gateways."""
    from squidbot.config.limits import limits_of_settings

    limits = limits_of_settings(settings)
    if settings.redis is None and lazy:
        from squidbot.adapters.limits.shared import SharedRateLimiter

        return SharedRateLimiter(limits, clock, file=state / "limits.json")
    if settings.redis is None:
        from squidbot.adapters.limits.memory import MemoryRateLimiter

        return MemoryRateLimiter(limits, clock=clock)
    try:
        from squidbot.adapters.limits.redis import RedisRateLimiter
    except ImportError:
        from squidbot.core.domain.errors import ConfigError

        hint = "Install it: pip install 'squidbot-gateway[redis]'."
        raise ConfigError("The settings name a Redis server, and the library for it is not there.", hint=hint) from None
    return RedisRateLimiter(limits, url=settings.redis, clock=clock)


def build_observers(
    *, lazy: bool, metrics: "Callable[[], Metrics]", alerting: "CallObserver", announcer: "CallObserver"
) -> "list[CallObserver]":
    """Who hears of every attempt. Nobody will ever ask a command (`lazy`) for what it counted."""
    told = [alerting, announcer]
    return told if lazy and not _is_observed() else [metrics(), *told]


def _is_observed() -> bool:
    """Whether somebody set up OpenTelemetry around this process."""
    return "opentelemetry" in sys.modules or any(name.startswith("OTEL_") for name in os.environ)


def build_metrics() -> "Metrics":
    """Calls counted and timed."""
    from squidbot.adapters.telemetry.metrics import Metrics

    return Metrics()


def build_tracing(*, lazy: bool) -> "Tracing | None":
    """A span for each call; a command (`lazy`) has nobody to tell of them, unless somebody looks on."""
    if lazy and not _is_observed():
        return None
    from squidbot.adapters.telemetry.tracing import OpenTelemetryTracing

    return OpenTelemetryTracing()


def build_alert_sinks(settings: "Settings", *, store: "SQLStore", announcer: "Announcer") -> "list[AlertSink]":
    """Who is told of alerts: the log, the store, the hub, and the webhook if there is one."""
    from squidbot.adapters.telemetry.alerts import AlertLog

    sinks: list[AlertSink] = [AlertLog(), store, announcer]
    if settings.alerts.webhook is None:
        return sinks
    from squidbot.adapters.telemetry.webhook import AlertWebhook

    return [*sinks, AlertWebhook(settings.alerts.webhook)]


def build_alerting(settings: "Settings", *, store: "SQLStore", clock: "Clock", announcer: "Announcer") -> "Alerting":
    """What watches for the unusual."""
    from squidbot.config.limits import thresholds_of
    from squidbot.core.services.alerting import Alerting

    sinks = build_alert_sinks(settings, store=store, announcer=announcer)
    return Alerting(thresholds_of(settings.alerts), sinks=sinks, memory=store, clock=clock)


def build_recorder(
    store: "SQLStore", *, clock: "Clock", redactor: "Redactor", observers: "Sequence[CallObserver]"
) -> "Recorder":
    """What writes down every attempt, and tells who counts and who watches."""
    from squidbot.core.services.recording import Recorder

    return Recorder(store, clock=clock, redactor=redactor, observers=observers)


def build_permissions(mapper: "MCPToolMapper", store: "SQLStore", *, clock: "Clock") -> "Permissions":
    """Who may do what: the roles of the settings with what the database changed of them."""
    from squidbot.core.services.permissions import Permissions

    return Permissions(mapper, store, clock=clock)


def build_service(
    source: "MCPClient",
    *,
    registry: "ToolRegistry",
    schemas: "SchemaCheck",
    permissions: "Permissions",
    store: "SQLStore",
    limiter: "RateLimiter",
    recorder: "Recorder",
    alerting: "Alerting",
    tracing: "Tracing | None",
    hub: "Hub",
) -> "AgentMCPService":
    """The guarded door over all of it."""
    from fnmatch import fnmatchcase

    from squidbot.core.domain.tools import ToolId
    from squidbot.core.services.door import AgentMCPService, Parts

    def read_only(tool: ToolId) -> bool:
        try:
            entry = source.connection(tool.server).config
        except KeyError:
            return False
        return any(fnmatchcase(tool.tool, glob) for glob in entry.read_only)

    lifetimes: list[Any] = [store, limiter, alerting, source]
    service = AgentMCPService(
        Parts(
            source=source,
            registry=registry,
            permissions=permissions,
            schemas=schemas,
            limiter=limiter,
            recorder=recorder,
            grants=store,
            read_only=read_only,
            tracing=tracing,
            hub=hub,
            lifetimes=tuple(part for part in lifetimes if hasattr(part, "__aenter__")),
        )
    )
    source.on_unclaimed = service.questions.unclaimed
    return service


def build_reloader(
    settings: "Settings",
    *,
    client: "MCPClient",
    secrets: set[str],
    permissions: "Permissions",
    limiter: "Limits",
    alerting: "Alerting",
    store: "SQLStore",
    announcer: "Announcer",
    recorder: "Recorder",
    hub: "Hub",
) -> "Reloader[Settings]":
    """What takes up other settings while all of this runs."""
    from squidbot.config.limits import limits_of_settings, thresholds_of
    from squidbot.config.roles import mapper_of
    from squidbot.core.services.reloading import Meaning, Reloader

    def meaning(settings: "Settings") -> Meaning:
        gateway = {f"gateway.{key}": value for key, value in settings.gateway.model_dump().items()}
        return Meaning(
            secrets=settings.secrets,
            mapper=mapper_of(settings),
            limits=limits_of_settings(settings),
            thresholds=thresholds_of(settings.alerts),
            sinks=build_alert_sinks(settings, store=store, announcer=announcer),
            fixed={**gateway, "audit.url": settings.audit.url, "redis": settings.redis},
        )

    return Reloader(
        settings,
        meaning=meaning,
        servers=lambda settings: client.reconfigure(settings.mcp),
        secrets=secrets,
        permissions=permissions,
        limiter=limiter,
        alerting=alerting,
        recorder=recorder,
        hub=hub,
    )


async def reload_settings(reloader: "Reloader[Settings]", file: Path | None) -> bool:
    """Read the settings again and take them up; False, said and recorded, if they cannot be used. Raises NotRecorded."""
    from squidbot.config.load import load_settings
    from squidbot.core.domain.errors import ConfigError

    try:
        settings = load_settings(file)
    except ConfigError as error:
        await reloader.refuse(str(error))
        return False
    await reloader.apply(settings)
    return True
