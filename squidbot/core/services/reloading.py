"""Takes up other settings while everything runs: all of them or, if they cannot be used, none."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import anyio

from squidbot.core.domain.alerts import AlertThresholds
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.limits import Limit
from squidbot.core.domain.roles import MCPToolMapper
from squidbot.core.domain.servers import ServerChanges
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import AlertSink
from squidbot.core.services.alerting import Alerting
from squidbot.core.services.hub import Hub
from squidbot.core.services.permissions import Permissions
from squidbot.core.services.recording import Recorder

S = TypeVar("S")
_WHO = Caller("", origin="system")
_WHAT = ToolId("", "settings")
_log = logging.getLogger("squidbot.settings")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What settings mean for the parts that run."""

    secrets: Collection[str]
    mapper: MCPToolMapper
    limits: Sequence[Limit]
    thresholds: AlertThresholds
    sinks: Sequence[AlertSink]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """By path, what can only be taken up by starting again; the values may be secret and are compared, never shown."""


class Limits(Protocol):
    """A limiter whose limits can be changed."""

    def replace(self, limits: Sequence[Limit]) -> None: ...


class Reloader(Generic[S]):
    """Applies settings to what runs. `settings` are those that hold now."""

    def __init__(
        self,
        settings: S,
        *,
        meaning: Callable[[S], Meaning],
        servers: Callable[[S], Awaitable[ServerChanges]],
        secrets: set[str],
        permissions: Permissions,
        limiter: Limits,
        alerting: Alerting,
        recorder: Recorder,
        hub: Hub,
    ) -> None:
        self.settings = settings
        self._meaning = meaning
        self._servers = servers
        self._secrets = secrets
        self._permissions = permissions
        self._limiter = limiter
        self._alerting = alerting
        self._recorder = recorder
        self._hub = hub
        self._one_at_a_time = anyio.Lock()
        self._started_with = dict(meaning(settings).fixed)

    async def apply(self, settings: S) -> Mapping[str, Any]:
        """Take up settings that can be used, and say what changed. Raises NotRecorded; then all stays as it was.

        Gives back `added`, `removed`, `changed`, `adjusted` (servers), and `restart`: what waits for the next start.
        """
        async with self._one_at_a_time:
            meaning = self._meaning(settings)
            # Before anything is written that may hold one of them; what was secret before stays so.
            self._secrets.update(meaning.secrets)
            attempt = self._recorder.attempt(_WHO, _WHAT, {}, revision=self._permissions.revision, kind="settings")
            await self._recorder.intend(attempt, changes=True)
            try:
                changes = await self._take_up(settings, meaning)
            except BaseException as error:
                await self._recorder.failed(
                    attempt, f"stopped half-way: {type(error).__name__}", outcome="server_error"
                )
                raise
            done = {**asdict(changes), "restart": self._waits_for_a_start(meaning.fixed)}
            await self._recorder.done(attempt, done)
            self._say(done)
            return done

    def clean(self, text: str) -> str:
        """`text` without what appears nowhere."""
        return self._recorder.redactor.text(text)

    async def refuse(self, report: str) -> None:
        """Say and record that settings cannot be used: those that hold stay. Raises NotRecorded."""
        attempt = self._recorder.attempt(_WHO, _WHAT, {}, revision=self._permissions.revision, kind="settings")
        await self._recorder.failed(attempt, report, outcome="refused")
        clean = self._recorder.redactor.text(report)
        _log.warning("The settings stay as they were: %s", clean)
        self._hub.publish(Happening("settings", data={"ok": False, "report": clean}))

    async def _take_up(self, settings: S, meaning: Meaning) -> ServerChanges:
        # First who may do what: a server that comes now must not meet yesterday's roles.
        self._permissions.replace(meaning.mapper)
        self._limiter.replace(meaning.limits)
        self._alerting.replace(meaning.thresholds, sinks=meaning.sinks)
        changes = await self._servers(settings)
        self.settings = settings
        return changes

    def _say(self, done: Mapping[str, Any]) -> None:
        words = "; ".join(f"{what} {', '.join(names)}" for what, names in done.items() if names and what != "restart")
        _log.info("The settings were taken up anew%s", f": servers {words}" if words else "")
        if done["restart"]:
            _log.warning("Not taken up before squidbot is started again: %s", ", ".join(done["restart"]))
        self._hub.publish(Happening("grants"))
        self._hub.publish(Happening("settings", data={"ok": True, **done}))

    def _waits_for_a_start(self, fixed: Mapping[str, Any]) -> list[str]:
        paths = sorted({*self._started_with, *fixed})
        return [path for path in paths if self._started_with.get(path) != fixed.get(path)]
