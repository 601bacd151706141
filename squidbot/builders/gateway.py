"""The gateway: who is let in, what clients and people meet, and the process around it."""

from collections.abc import AsyncIterable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from squidbot.adapters.mcp.client import MCPClient
    from squidbot.adapters.relay.redis import RedisRelay
    from squidbot.adapters.store.store import SQLStore
    from squidbot.adapters.telemetry.metrics import Metrics
    from squidbot.config.schema import Settings
    from squidbot.core.domain.callers import Caller
    from squidbot.core.ports import (
        Clock,
        Identity,
        SchemaCheck,
    )
    from squidbot.core.services.admission import Admission
    from squidbot.core.services.desk import Desk
    from squidbot.core.services.door import AgentMCPService
    from squidbot.core.services.hub import Hub
    from squidbot.core.services.permissions import Permissions
    from squidbot.core.services.recording import Recorder
    from squidbot.core.services.reloading import Reloader
    from squidbot.core.services.sampling import Sampler
    from squidbot.gateway.dashboard.app import Dashboard
    from squidbot.gateway.mcp.endpoint import MCPEndpoint
    from squidbot.gateway.process import Gateway
    from squidbot.gateway.settings import SettingsWatch


def build_identity(settings: "Settings", clock: "Clock") -> "Identity | None":
    """Whose word on people is taken beside our own tokens, if the settings name anybody."""
    if settings.gateway.oidc is None:
        return None
    from squidbot.adapters.identity.oidc import OIDCIdentity

    oidc = settings.gateway.oidc
    return OIDCIdentity(issuer=oidc.issuer, audience=oidc.audience, role_claim=oidc.role_claim, clock=clock)


def build_admission(
    store: "SQLStore",
    *,
    recorder: "Recorder",
    clock: "Clock",
    permissions: "Permissions",
    hub: "Hub",
    identity: "Identity | None",
) -> "Admission":
    """Who is let in."""
    from squidbot.core.services.admission import Admission

    return Admission(
        store, recorder=recorder, clock=clock, roles=lambda: permissions.mapper.roles, hub=hub, identity=identity
    )


def build_relay(settings: "Settings", hub: "Hub") -> "RedisRelay | None":
    """What carries happenings to and from the other gateways, where the settings name a Redis."""
    if settings.redis is None:
        return None
    from squidbot.adapters.relay.redis import RedisRelay

    relay = RedisRelay(
        settings.redis, heard=lambda happening: hub.publish(happening, local=True), listens=hub.is_heard_here
    )
    hub.outward, hub.carries, hub.on_listen = relay.send, relay.carries, relay.ask
    return relay


async def serve_stdio(service: "AgentMCPService", hub: "Hub", *, caller: "Caller", lines: AsyncIterable[bytes]) -> None:
    """Serve one caller on `lines` and stdout, until there are no more."""
    from squidbot._version import __version__
    from squidbot.core.domain.endpoint import EndpointOptions
    from squidbot.gateway.mcp.stdio import serve_stdio as serve

    await serve(service, hub, caller, lines, options=EndpointOptions(version=__version__))


def build_settings_watch(
    reloader: "Reloader[Settings]", *, settings: "Settings", file: Path | None, clock: "Clock"
) -> "SettingsWatch[Settings]":
    """What notices that the settings file is another, and takes it up."""
    from squidbot.config.load import load_settings
    from squidbot.config.watch import Watched, files_of
    from squidbot.gateway.settings import SettingsWatch

    return SettingsWatch(
        reloader,
        # What came from no file can only be the same again.
        load=lambda: settings if settings.source is None else load_settings(file),
        files=files_of,
        watched=Watched(),
        file=str(settings.source) if settings.source else None,
        clock=clock,
    )


def build_endpoint(service: "AgentMCPService", *, hub: "Hub", store: "SQLStore") -> "MCPEndpoint":
    """The MCP side of the gateway."""
    from uuid import uuid4

    from squidbot._version import __version__
    from squidbot.core.domain.endpoint import EndpointOptions
    from squidbot.gateway.mcp.endpoint import MCPEndpoint

    options = EndpointOptions(version=__version__, gateway=uuid4().hex)
    return MCPEndpoint(service, hub, key=lambda: store.key("sessions"), options=options)


def build_desk(
    service: "AgentMCPService",
    *,
    client: "MCPClient",
    store: "SQLStore",
    admission: "Admission",
    hub: "Hub",
    clock: "Clock",
    watch: "SettingsWatch[Settings]",
) -> "Desk":
    """What people and programs look at and change."""
    from squidbot._version import __version__
    from squidbot.core.services.desk import Desk, DeskParts

    async def restart(server: str) -> None:
        await client.restart(server)

    return Desk(
        DeskParts(
            door=service,
            trail=store,
            admission=admission,
            hub=hub,
            clock=clock,
            version=__version__,
            read_only=service.is_read_only,
            restart=restart,
            statuses=client.statuses,
            stderr=lambda server: client.status(server).stderr,
            settings=lambda: watch.report,
        )
    )


def build_dashboard(
    desk: "Desk", *, admission: "Admission", hub: "Hub", clock: "Clock", store: "SQLStore"
) -> "Dashboard":
    """The window for people."""
    from squidbot.gateway.dashboard.app import Dashboard, DashboardParts

    return Dashboard(
        DashboardParts(desk=desk, admission=admission, hub=hub, clock=clock, key=lambda: store.key("dashboard"))
    )


def build_gateway(
    service: "AgentMCPService",
    *,
    settings: "Settings",
    client: "MCPClient",
    relay: "RedisRelay | None",
    endpoint: "MCPEndpoint",
    dashboard: "Dashboard",
    desk: "Desk",
    admission: "Admission",
    schemas: "SchemaCheck",
    metrics: "Metrics",
    watch: "SettingsWatch[Settings]",
    sampler: "Sampler | None",
    store: "SQLStore",
    state: Path,
    host: str | None,
    say: "Callable[[str], None]",
) -> "Gateway":
    """The whole of it as a process, not yet running."""
    import logging

    from squidbot.core.services.grant_review import GrantReview
    from squidbot.gateway.admin import admin_token
    from squidbot.gateway.app import GatewayParts, create_app
    from squidbot.gateway.auth import Present
    from squidbot.gateway.hosts import HostRules
    from squidbot.gateway.process import Gateway

    listening, log = settings.gateway, logging.getLogger("squidbot.gateway")
    service.questions.sampler = sampler
    review = GrantReview(
        service,
        known=lambda: [status.name for status in client.statuses()],
        settled=client.prepare,
        tell=log.warning,
    )

    parts = GatewayParts(
        desk=desk,
        admission=admission,
        recorder=service.recorder,
        present=Present(admission),
        schemas=schemas,
        mcp=endpoint,
        dashboard=dashboard,
        exposition=metrics.exposition,
        ready=desk.is_ready,
        rules=HostRules(
            bound=host or listening.host,
            allowed_hosts=tuple(listening.allowed_hosts),
            allowed_origins=tuple(listening.allowed_origins),
        ),
        issuer=listening.oidc.issuer if listening.oidc else None,
        session=dashboard.who,
        on_fault=lambda fault: log.error("a request failed inside squidbot", exc_info=fault),
    )

    async def sign_in(url: str) -> str | None:
        return await dashboard.sign_in.link(url, await admin_token(admission, state))

    def drain() -> None:
        endpoint.drain()
        dashboard.close()

    return Gateway(
        lifetimes=[
            part for part in (relay, service, store.seat(alone=settings.redis is None), endpoint) if part is not None
        ],
        app=lambda: create_app(parts),
        start=client.start_all,
        changed=watch.changed,
        reload=watch.reload,
        beside=(dashboard.listen, service.follow_grants, review.run, parts.present.watch),
        sign_in=sign_in,
        drain=drain,
        let_go=client.let_go,
        hurry=client.hurry,
        say=say,
    )
