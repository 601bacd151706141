"""Says aloud what servers, calls and alerts come to: every change becomes a happening on the hub."""

from dataclasses import asdict
from typing import Final

from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.audit import ToolExecution, record_json
from squidbot.core.domain.happenings import Happening, Topic
from squidbot.core.domain.servers import EventKind, ServerEvent, ServerState
from squidbot.core.services.hub import Hub

_CHANGES: Final[dict[EventKind, Topic]] = {
    "tools_changed": "tools",
    "prompts_changed": "prompts",
    "resources_changed": "resources",
}
_OFFERS: Final[tuple[Topic, ...]] = ("tools", "prompts", "resources")


class Announcer:
    """Satisfies `CallObserver` and `AlertSink`, and is a listener for the events of servers."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._states: dict[str, ServerState] = {}

    def event(self, event: ServerEvent) -> None:
        """Hear what a server's side did."""
        if event.kind == "state" and event.state is not None:
            self._moved(event.server, event.state)
        elif event.kind == "resource_updated":
            self._hub.publish(Happening("resource_updated", event.server, {"uri": event.params.get("uri", "")}))
        elif (topic := _CHANGES.get(event.kind)) is not None:
            self._hub.publish(Happening(topic, event.server))

    def observe(self, record: ToolExecution) -> None:
        """Hear of an attempt that ended."""
        if self._hub.is_heard("call"):  # to write it out takes longer than all the rest
            self._hub.publish(Happening("call", record.server or None, record_json(record)))

    async def send(self, alert: Alert) -> None:
        """Hear of something unusual."""
        self._hub.publish(Happening("alert", alert.server, asdict(alert)))

    def _moved(self, server: str, state: ServerState) -> None:
        before, self._states[server] = self._states.get(server), state
        self._hub.publish(Happening("state", server, {"state": state}))
        # One that was only away for a moment kept its tools; whether they are others now is told by events of its own.
        if (state == "ready" and before != "degraded") or state == "idle":
            for topic in _OFFERS:
                self._hub.publish(Happening(topic, server))
