"""Keeps one server up: one task opens it, listens, notices the end, and comes back by itself.

Everything with a lifetime (process, socket, session) is entered and left in that owner task, so that `open` and
`stop` may be called from any other. This is the only module that creates tasks outside of a task group.
"""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import anyio
from loguru import logger

from squidbot.adapters.mcp.allocator import uncollected
from squidbot.adapters.mcp.apart import apart
from squidbot.adapters.mcp.attendant import CHANGES, Attendant
from squidbot.adapters.mcp.calling import clean, connection_error
from squidbot.adapters.mcp.catalogue import KINDS, Catalogue, Kind, fetch
from squidbot.adapters.mcp.channel import Bounds, ChannelClosed
from squidbot.adapters.mcp.dispatcher import WireError
from squidbot.adapters.mcp.eras import Era
from squidbot.adapters.mcp.opening import SessionError, Surroundings, open_session
from squidbot.adapters.mcp.pace import Pace
from squidbot.adapters.mcp.protocol import CONNECTION_CLOSED
from squidbot.adapters.mcp.remembered import Remembered
from squidbot.adapters.mcp.session import Session
from squidbot.adapters.mcp.transport import Streams
from squidbot.adapters.mcp.transports.stdio import ProcessChannel
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import ConfigError, MCPConnectionError
from squidbot.core.domain.servers import ServerEvent, ServerState
from squidbot.core.domain.weight import weight

_SSE_INSTEAD = frozenset({400, 404, 405, 406})
"""Statuses by which a server that knows only the old SSE transport refuses a POST."""


_HEAVY = 10_000
"""Values in all lists of a server, beyond which it is no matter of a moment to take them in."""


class NotReady(WireError):
    """There is no session to send anything on."""


class Supervisor:
    """One server's life: from `open` until `stop` it is kept up, or tried again and again."""

    def __init__(self, config: MCPServerConfig, around: Surroundings, *, on_change: Callable[[], None]) -> None:
        self.config = config
        self.catalogue = Catalogue()
        self.known: Remembered | None = None
        self.state: ServerState = "idle"
        self.since = time.time()
        self.error: MCPConnectionError | None = None
        self.attendant: Attendant | None = None
        self.restarts = 0
        self.subscriptions: set[str] = set()
        """Resources of which updates are wanted, whatever becomes of the session."""
        self._around = around
        self._on_change = on_change
        self._bounds = Bounds(**config.bounds.model_dump())
        self._timeout = config.timeout or 30.0
        self._owner: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._nudge = asyncio.Event()
        self._settled = asyncio.Event()
        self._listing = asyncio.Lock()
        self._session: Session | None = None
        self._streams: Streams | None = None
        self._opening: anyio.CancelScope | None = None
        self._ready_since = math.inf
        self._retired = False
        self._proved = False
        self._trusting = True

    async def begin(self) -> None:
        """Connect if need be, without waiting for the outcome."""
        while self._owner is not None and (self._stopping.is_set() or self._owner.done()):
            await self.stop()  # somebody else's stop, which must end before we begin
        if self._owner is None:
            self._stopping.clear()
            self._settled.clear()
            self._owner = asyncio.create_task(self._own(), name=f"squidbot server {self.config.name}")
            self._move("connecting")

    async def open(self) -> bool:
        """Connect if need be and wait for the outcome; a server that failed is tried again in the background."""
        await self.begin()
        with anyio.move_on_after(self.config.startup_timeout):
            await self._settled.wait()
        if not self._settled.is_set():
            self._fail(self.error or self._too_late(), final=True)
        return self.state == "ready"

    async def stop(self, why: str | None = None) -> None:
        """Disconnect; afterwards nothing of the server is left. Calls that are under way are told `why`."""
        owner = self._owner
        if owner is None:
            return
        if why is not None and self._session is not None:
            self._session.wire.end = ChannelClosed(why)
        self._stopping.set()
        self._nudge.set()
        if self._opening is not None:
            self._opening.cancel()
        await asyncio.wait([owner])
        if self._owner is owner:
            self._owner = None
            self._move("idle")

    def hurry(self) -> None:
        """Let a process have little time to end, now or when it is stopped."""
        if isinstance(self._streams, ProcessChannel):
            self._streams.hurry()

    def recall(self) -> bool:
        """Know the server's lists from the last time, without connecting; False if there was none."""
        known = self._around.memory.recall(self.config.digest)
        if known is not None and self.known is None:
            self._apply(known)
        return known is not None

    @property
    def idle(self) -> bool:
        """Whether nobody keeps it up: it was never started, or was stopped."""
        return self._owner is None or self._stopping.is_set()

    @property
    def reason(self) -> str:
        """Why it cannot be used, in short, for a model."""
        if self.error is None:
            return "it is still being started" if self.state == "connecting" else "it is not connected"
        return self.error.reason

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines of what the process wrote beside its messages, if it is one."""
        return self._streams.last_lines if isinstance(self._streams, ProcessChannel) else ()

    def adopt(self, config: MCPServerConfig) -> None:
        """Take other settings for the server as it runs."""
        self.config, self._timeout = config, config.timeout or 30.0
        if self.known is not None:
            self._apply(self.known)

    @property
    def session(self) -> Session | None:
        """The session there is, ready or not."""
        return self._session

    async def ready_session(self, timeout: float) -> Session:
        """The open session; waits for one that is just being opened. Raises NotReady if there is none to come."""
        if self._session is not None and self.state == "ready" and not self._retired:
            return self._session
        if self._owner is not None and (self._retired or self.state == "connecting"):
            with anyio.move_on_after(timeout):
                await self._settled.wait()
        if self._session is None or self.state != "ready":
            raise NotReady(CONNECTION_CLOSED, self.reason, "unavailable")
        return self._session

    # The owner

    async def _own(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        pace = Pace(self.config.max_retries)
        try:
            while not self._stopping.is_set():
                self._ready_since = math.inf
                error = await self._live()
                if self._stopping.is_set() or error is None:
                    continue
                self.restarts += 1
                now = loop.time()
                if self._ready_since < now:
                    began = now
                pace.failed(lasted=now - self._ready_since, proved=self._proved)
                self._proved = False
                hopeless = pace.exhausted or now - began >= self.config.startup_timeout
                self._fail(error, final=hopeless or error.permanent)
                slow = hopeless and self.known is None
                with anyio.move_on_after(pace.wait(retry_after=error.retry_after, slow=slow)):
                    await self._stopping.wait()
        finally:
            self._session = None
            self._settled.set()

    async def _live(self) -> MCPConnectionError | None:
        """Open the server and stay with it to the end; gives back what went wrong, nothing if the end was ours."""
        try:
            config = self.config.resolved()
        except ConfigError as error:
            return MCPConnectionError(
                str(error), server=self.config.name, reason="its settings are incomplete", permanent=True
            )
        known = self._around.memory.recall(config.digest) if self._trusting else None
        era: Era | None = known.era if known else None
        if config.protocol != "auto":
            era = config.protocol
        over_sse = known is not None and known.over_sse
        while True:
            failure = await self._converse(config, era, over_sse=over_sse)
            if failure is None or failure.opened or self._stopping.is_set():
                return failure.error if failure else None
            if known is not None:
                # What was true the last time perhaps no longer is: find out again, at once if it was refused.
                known, self._trusting = None, False
                if failure.cause != "refused":
                    return failure.error
                era, over_sse = None if config.protocol == "auto" else era, False
            elif config.transport == "http" and not over_sse and failure.error.status in _SSE_INSTEAD:
                over_sse = True
            elif failure.cause == "closed" and era is None:
                # Some servers exit at a method that they do not know.
                era = "legacy"
            else:
                return failure.error

    async def _converse(self, config: MCPServerConfig, era: Era | None, *, over_sse: bool) -> "_Failure | None":
        """Open a session and stay with it; gives back how it failed, nothing if the end was ours."""
        opened = False
        limit = anyio.CancelScope(deadline=anyio.current_time() + config.startup_timeout)
        around = replace(self._around, callbacks=replace(self._around.callbacks, on_event=self._on_session_event))
        try:
            self._opening = limit
            with limit:
                async with open_session(config, around, era, over_sse=over_sse, on_open=self._on_open) as session:
                    await self.refresh(None, session, over_sse=over_sse)
                    opened, limit.deadline, self._opening = True, math.inf, None
                    await self._attend(session)
        except SessionError as error:
            return _Failure(error.why, opened, "closed" if error.closed else "refused")
        finally:
            self._session = self.attendant = self._opening = None
        if limit.cancelled_caught and not self._stopping.is_set():
            return _Failure(self._too_late(), opened=False, cause="late")
        return None

    async def _attend(self, session: Session) -> None:
        """Be ready until the server ends, we stop, or the session turns out to be lost."""
        name = self.config.name
        attendant = Attendant(
            session,
            server=name,
            timeout=self._timeout,
            refresh=lambda kinds: self.refresh(kinds, session),
            subscriptions=self.subscriptions,
        )
        self._nudge.clear()
        self._retired, self._trusting = False, True
        self._session, self.attendant, self.error = session, attendant, None
        self._ready_since = asyncio.get_running_loop().time()
        self._move("ready")
        self._settled.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attendant.follow_changes)
            tasks.start_soon(self._nudge_at_end, session)
            tasks.start_soon(attendant.take_pulse, self._give_up)
            if session.era == "modern":
                tasks.start_soon(attendant.listen, self._on_updated)
            else:
                tasks.start_soon(attendant.subscribe_again)
            if self.config.transport == "http":
                tasks.start_soon(attendant.ask_after, self._recovered, lambda: self.retire(session))
            if not self._stopping.is_set():
                await self._nudge.wait()
            tasks.cancel_scope.cancel()
        if self._stopping.is_set() or self._retired:
            return
        end = session.wire.end or ChannelClosed("it no longer answered, and was ended")
        self._session = None
        self.error = connection_error(end, self.config, end)
        self._move("degraded")
        raise end

    async def _nudge_at_end(self, session: Session) -> None:
        await session.wire.ended.wait()
        self._nudge.set()

    def _on_open(self, streams: Streams) -> None:
        self._streams = streams

    def _too_late(self) -> MCPConnectionError:
        said = self._streams.last_words if isinstance(self._streams, ProcessChannel) else ""
        hint = "If it is only slow, give it more time with `startup_timeout`; else see what it waits for."
        late = ChannelClosed(f"it did not answer within {self.config.startup_timeout:g} s", detail=said, hint=hint)
        return connection_error(late, self.config, late)

    # What it learns

    async def refresh(self, kinds: set[Kind] | None, session: Session, *, over_sse: bool | None = None) -> bool:
        """List again (everything if `kinds` is None) and remember; whether anything was different."""
        async with self._listing:
            return await self._refresh(kinds, session, over_sse=over_sse)

    async def _refresh(self, kinds: set[Kind] | None, session: Session, *, over_sse: bool | None) -> bool:
        before = self.known
        known = await fetch(
            session,
            self.config,
            bounds=self._bounds,
            timeout=self._timeout,
            before=before if kinds is not None else None,
            **({"kinds": kinds} if kinds is not None else {}),
        )
        if over_sse is not None:
            known = replace(known, over_sse=over_sse)
        if known == before:
            return False
        await self._take_in(known)
        # The first list of all is no change; that of a server which comes back may be one.
        for kind in kinds or (KINDS if before is not None else ()):
            self._around.callbacks.event(ServerEvent(self.config.name, f"{kind}_changed"))  # type: ignore[arg-type]
        return True

    async def _take_in(self, known: Remembered) -> None:
        """Remember what was listed, and offer it; others are not kept waiting by a list that is long."""
        config = self.config

        def taken_in() -> Catalogue:
            with uncollected():
                self._around.memory.keep(config.digest, known)
                return Catalogue.of(known, config)

        lists = [known.tools, known.prompts, known.resources, known.templates]
        # What the stateless era has in its lists may need to be loaded first, which takes long as well.
        takes_long = known.era == "modern" or weight(lists, _HEAVY) > _HEAVY
        catalogue = await apart(taken_in) if takes_long else taken_in()
        self._apply(known, catalogue if self.config is config else None)

    def _apply(self, known: Remembered, catalogue: Catalogue | None = None) -> None:
        self.known = known
        self.catalogue = Catalogue.of(known, self.config) if catalogue is None else catalogue
        self._on_change()

    def _on_session_event(self, event: ServerEvent) -> None:
        kind = CHANGES.get(event.method or "")
        if kind is not None and self.attendant is not None:
            self.attendant.changed(kind)
        if event.method == "notifications/resources/updated":
            self._on_updated(str(event.params.get("uri", "")))
        self._around.callbacks.event(event)

    def _on_updated(self, uri: str) -> None:
        self._around.callbacks.event(ServerEvent(self.config.name, "resource_updated", params={"uri": uri}))

    # States

    def _move(self, state: ServerState) -> None:
        if state == self.state:
            return
        self.state, self.since = state, time.time()
        logger.bind(server=self.config.name).trace("server {!r} is {}", self.config.name, state)
        self._around.callbacks.event(ServerEvent(self.config.name, "state", state=state))
        self._on_change()

    def _fail(self, error: MCPConnectionError, *, final: bool) -> None:
        """Note a failure; a final one settles the start that somebody may be waiting for."""
        self.error = error
        self._retired = False
        name = self.config.name
        if self.state in ("ready", "degraded"):
            logger.bind(server=name).warning("server {!r} was lost, coming back: {}", name, error)
            self._move("failed" if final else "degraded")
        elif final and self.state != "failed":
            hint = f"\n    {error.hint}" if error.hint else ""
            logger.bind(server=name).warning("server {!r} is not available: {}{}", name, error, hint)
            self._move("failed")
        if final or self.state == "degraded":
            self._settled.set()

    def doubt(self, session: Session, reason: str) -> None:
        """A call could not reach the server: until it answers again, calls are refused at once."""
        if self._session is session and self.state == "ready" and self.attendant is not None:
            self.error = MCPConnectionError(clean(reason, self.config), server=self.config.name)
            self._move("degraded")
            self.attendant.doubt()

    def proved(self) -> None:
        """A call was answered: whatever happens next, this life was a good one."""
        self._proved = True

    def _give_up(self) -> None:
        """The server answers nothing any more: end it, and start it anew."""
        self._nudge.set()

    def _recovered(self) -> None:
        if self._session is not None:
            self.error = None
            self._move("ready")

    def retire(self, session: Session) -> None:
        """The server no longer knows our session: open another."""
        if self._session is session and not self._retired:
            self._retired = True
            self._settled.clear()
            self._nudge.set()


@dataclass(frozen=True, slots=True)
class _Failure:
    """How a conversation failed: whether it had been opened, and by what it ended."""

    error: MCPConnectionError
    opened: bool
    cause: Literal["closed", "refused", "late"]
