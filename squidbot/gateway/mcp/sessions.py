"""What this process knows of sessions beside their ids: their requests under way, what they wait for, what they ended.

Another process may hold a session's stream, or its call: what concerns them goes over the hub as `relay`.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.servers import LogLevel
from squidbot.core.services.hub import Hub
from squidbot.gateway.mcp.session import Session

_TOLD = 6
"""So many times in the period after which it would end, a session's use is told to the others."""
_MOST_ENDED = 100_000


@dataclass(slots=True)
class State:
    """One session, as far as this process has to do with it."""

    used: float
    told: float
    expires: float
    level: LogLevel | None = None
    uris: set[str] = field(default_factory=set)
    """Resources of its server that it wants to hear of."""
    held: dict[str, tuple[Caller, str]] = field(default_factory=dict)
    """Of these, what this process has subscribed to, in whose name, and at which server."""
    end_stream: Callable[[], None] | None = None
    """While its stream is here."""
    running: dict[str | int, list[anyio.CancelScope]] = field(default_factory=dict)

    @property
    def is_busy(self) -> bool:
        return self.end_stream is not None or bool(self.running)


@dataclass(slots=True)
class _Waiting:
    session: str
    arrived: anyio.Event = field(default_factory=anyio.Event)
    answer: Mapping[str, Any] | None = None


class Sessions:
    """The sessions that this process has seen. Times are those of the clock that is given with each call."""

    def __init__(self, hub: Hub, options: EndpointOptions) -> None:
        self._hub = hub
        self._options = options
        self._self = secrets.token_hex(6)
        self._states: dict[str, State] = {}
        self._ended: dict[str, float] = {}
        self._waiting: dict[str, _Waiting] = {}
        self.give_back: Callable[[str, Caller, str], None] = lambda _uri, _caller, _server: None
        """Unsubscribes from a resource that a session held."""

    def __len__(self) -> int:
        return len(self._states)

    def use(self, session: Session, now: float) -> State | None:
        """The state of a session that is used now; None if it has ended."""
        if session.id in self._ended:
            return None
        state = self._states.get(session.id)
        if state is None:
            state = self._state(session.id, now, session.expires)
        state.used = now
        if now - state.told > self._options.session_idle / _TOLD:
            state.told = now
            self._relay(session.id, "use", expires=session.expires)
        return state

    def end(self, name: str, expires: float) -> None:
        """End a session here and everywhere."""
        self._forget(name, expires)
        self._relay(name, "end", expires=expires)

    def sweep(self, now: float) -> None:
        """End sessions that were idle for too long, and forget ends that no id can outlive."""
        idle = self._options.session_idle
        for name, state in list(self._states.items()):
            if not state.is_busy and now - state.used > idle:
                self.end(name, state.expires)

    def expire(self, time: float) -> None:
        """Forget ends of sessions whose ids have expired by now."""
        for name in [name for name, expires in self._ended.items() if expires <= time]:
            del self._ended[name]

    # Requests under way

    def begin(self, state: State, request: str | int, scope: anyio.CancelScope) -> None:
        """From now on the session may cancel a request of its own."""
        state.running.setdefault(request, []).append(scope)

    def over(self, state: State, request: str | int, scope: anyio.CancelScope) -> None:
        """It has been answered."""
        scopes = state.running[request]
        scopes.remove(scope)
        if not scopes:
            del state.running[request]

    def cancel(self, session: str, request: Any) -> None:
        """Cancel a session's own request, wherever it runs."""
        if not self._cancelled(session, request):
            self._relay(session, "cancel", request=request)

    # Waiting for a client

    async def answer(self, session: str, send: Callable[[str], bool]) -> Mapping[str, Any] | None:
        """What the client answers to a request that `send` puts on its way under the id that it is given."""
        name = f"{self._self}-{secrets.token_hex(8)}"
        waiting = self._waiting[name] = _Waiting(session)
        try:
            if not send(name):
                return None
            with anyio.move_on_after(self._options.answer_within):
                await waiting.arrived.wait()
        finally:
            del self._waiting[name]
        return waiting.answer

    def answered(self, session: str, message: Mapping[str, Any]) -> None:
        """Take a client's answer to one of our requests, wherever that was sent from."""
        if not self._taken(session, message):
            self._relay(session, "answer", message=dict(message))

    def set_level(self, session: Session | None, state: State, level: LogLevel) -> None:
        """Which log messages the session wants; without one, whoever the state is of."""
        state.level = level
        if session is not None:
            self._relay(session.id, "level", level=level, expires=session.expires)

    def set_subscription(self, session: Session | None, state: State, uri: str, *, wanted: bool) -> None:
        """Whether the session wants to hear of a resource."""
        self._subscribed(state, uri, wanted=wanted)
        if session is not None:
            self._relay(session.id, "subscription", uri=uri, wanted=wanted, expires=session.expires)

    # From the others

    def relayed(self, happening: Happening, now: float) -> None:
        """Take up what another process says of a session."""
        data = happening.data
        if data.get("from") == self._self or not isinstance(data.get("session"), str):
            return
        name, message = data["session"], data.get("message") or {}
        match message.get("what"):
            case "end":
                self._forget(name, message["expires"])
            case "cancel":
                self._cancelled(name, message["request"])
            case "answer":
                self._taken(name, message["message"])
            case "use" | "level" | "subscription" as what:
                if name in self._ended:
                    return
                state = self._states.get(name) or self._state(name, now, message["expires"])
                state.used = state.told = now
                if what == "level":
                    state.level = message["level"]
                elif what == "subscription":
                    self._subscribed(state, message["uri"], wanted=message["wanted"])

    def _state(self, name: str, now: float, expires: float) -> State:
        if len(self._states) >= self._options.most_sessions:
            quiet = (key for key, state in self._states.items() if not state.is_busy and not state.uris)
            oldest = next(quiet, None)  # in the order in which they were first seen
            if oldest is not None:
                del self._states[oldest]
        state = self._states[name] = State(used=now, told=now, expires=expires)
        return state

    def _forget(self, name: str, expires: float) -> None:
        while len(self._ended) >= _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[name] = expires
        state = self._states.pop(name, None)
        if state is not None:
            for scopes in list(state.running.values()):
                for scope in scopes:
                    scope.cancel()
            for uri in tuple(state.uris):
                self._subscribed(state, uri, wanted=False)
            if state.end_stream is not None:
                state.end_stream()

    def _subscribed(self, state: State, uri: str, *, wanted: bool) -> None:
        if wanted:
            state.uris.add(uri)
            return
        state.uris.discard(uri)
        held = state.held.pop(uri, None)
        if held is not None:
            self.give_back(uri, *held)

    def _cancelled(self, session: str, request: Any) -> bool:
        state = self._states.get(session)
        known = isinstance(request, str | int) and not isinstance(request, bool)
        scopes = state.running.get(request, []) if state is not None and known else []
        for scope in scopes:
            scope.cancel()
        return bool(scopes)

    def _taken(self, session: str, message: Mapping[str, Any]) -> bool:
        waiting = self._waiting.get(str(message.get("id")))
        if waiting is None or waiting.session != session:
            return False
        waiting.answer = message
        waiting.arrived.set()
        return True

    def _relay(self, session: str, what: str, **more: Any) -> None:
        data = {"session": session, "from": self._self, "message": {"what": what, **more}}
        self._hub.publish(Happening("relay", data=data))
