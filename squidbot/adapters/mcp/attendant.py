"""Sits with one open session: hears of changes, looks again, and asks after a server that fell silent."""

import asyncio
import math
from collections.abc import Awaitable, Callable

import anyio
from loguru import logger

from squidbot.adapters.mcp.catalogue import KINDS, Kind
from squidbot.adapters.mcp.dispatcher import WireError
from squidbot.adapters.mcp.http_outcome import failure_of
from squidbot.adapters.mcp.pace import Pace
from squidbot.adapters.mcp.protocol import MCPError
from squidbot.adapters.mcp.session import Session

Refresh = Callable[[set[Kind]], Awaitable[bool]]
"""Lists the given kinds again; whether anything was different."""

CHANGES: dict[str, Kind] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
_GATHER = 0.05
"""Seconds in which several changes count as one."""
_APART = 0.5
"""Seconds between two looks at the same server."""
_FAR_APART = 30.0
"""The same, for a server that announces changes and has none."""
_PROBE = 3.0
"""Seconds for a server to show that it is there."""


class Attendant:
    """Everything that goes on beside the calls while a session is open."""

    def __init__(
        self, session: Session, *, server: str, timeout: float, refresh: Refresh, subscriptions: set[str] | None = None
    ) -> None:
        self._session = session
        self._server = server
        self._timeout = timeout
        self._refresh = refresh
        self._kinds: set[Kind] = set()
        self._changed = asyncio.Event()
        self._doubted = asyncio.Event()
        self._suspected = asyncio.Event()
        self._ping = "server/discover" if session.era == "modern" else "ping"
        self._subscriptions = set[str]() if subscriptions is None else subscriptions
        """Resources of which updates are wanted, from one session to the next."""
        self._resubscribe = anyio.CancelScope()

    def changed(self, kind: Kind) -> None:
        """The server says that a list of its is no longer true."""
        self._kinds.add(kind)
        self._changed.set()

    def doubt(self) -> None:
        """The server could not be reached by a call: ask after it until it is back."""
        self._doubted.set()

    def subscribe(self, uri: str) -> None:
        """Hear of updates of a resource, in the stateless era."""
        self._subscriptions.add(uri)
        self._resubscribe.cancel()

    def unsubscribe(self, uri: str) -> None:
        self._subscriptions.discard(uri)
        self._resubscribe.cancel()

    async def subscribe_again(self) -> None:
        """Tell a server of the handshake era, which forgot it with its last session, what is wanted of it."""
        for uri in sorted(self._subscriptions):
            try:
                await self._session.request("resources/subscribe", {"uri": uri}, timeout=self._timeout)
            except MCPError as error:
                logger.bind(server=self._server).warning(
                    "server {!r} no longer tells of updates of {!r}: {}", self._server, uri, error.error.message
                )

    async def follow_changes(self) -> None:
        """Look again when told to, never more often than twice a second, and less if it was for nothing."""
        apart = _APART
        while True:
            await self._changed.wait()
            await asyncio.sleep(_GATHER)
            kinds, self._kinds = self._kinds, set()
            self._changed.clear()
            try:
                different = await self._refresh(kinds)
            except MCPError as error:
                different = True
                logger.bind(server=self._server).warning(
                    "server {!r}: listing again failed: {}", self._server, error.error.message
                )
            apart = _APART if different else min(apart * 2, _FAR_APART)
            await asyncio.sleep(apart)

    async def ask_after(self, recovered: Callable[[], None], lost: Callable[[], None]) -> None:
        """For servers without a lasting connection: once one was out of reach, probe until it answers."""
        while True:
            await self._doubted.wait()
            pace = Pace(retries=10)
            while not await self._answers(lost):
                pace.failed()
                await asyncio.sleep(pace.wait())
            self._doubted.clear()
            recovered()
            for kind in KINDS:
                self.changed(kind)

    def suspect(self) -> None:
        """A call was not answered in time: unless it may be busy with another's, see whether the server answers at all."""
        if not self._session.wire.busy:
            self._suspected.set()

    async def take_pulse(self, gone: Callable[[], None]) -> None:
        """Once suspected, a server must answer a ping, or it is `gone`."""
        while True:
            await self._suspected.wait()
            self._suspected.clear()
            try:
                await self._session.request(self._ping, timeout=_PROBE)
            except WireError:
                gone()
            except MCPError:
                continue

    async def _answers(self, lost: Callable[[], None]) -> bool:
        try:
            await self._session.request(self._ping, timeout=_PROBE)
        except MCPError as error:
            http = failure_of(error.error.data)
            if http is not None and http.session_lost:
                lost()
            # Any answer of the server itself, even a refusal, shows that it is there.
            return http is None and error.code > -32000
        return True

    async def listen(self, updated: Callable[[str], None]) -> None:
        """Keep one `subscriptions/listen` stream open, for what the server says it can tell."""
        pace = Pace(retries=10)
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                with anyio.CancelScope() as self._resubscribe:
                    if not await self._listen_once(updated):
                        await anyio.sleep_forever()
                if self._resubscribe.cancel_called:
                    continue
            except (MCPError, TimeoutError) as error:
                logger.bind(server=self._server).trace("server {!r}: listening ended: {}", self._server, error)
            pace.failed(lasted=loop.time() - started)
            await asyncio.sleep(pace.wait())
            for kind in KINDS:
                self.changed(kind)

    async def _listen_once(self, updated: Callable[[str], None]) -> bool:
        """Listen until the stream ends; False if there is nothing to listen to."""
        offers = self._session.offers
        tools = bool(offers.tools and offers.tools.list_changed)
        prompts = bool(offers.prompts and offers.prompts.list_changed)
        resources = bool(offers.resources and offers.resources.list_changed)
        if not (tools or prompts or resources or self._subscriptions):
            return False
        with anyio.CancelScope(deadline=anyio.current_time() + self._timeout) as opening:
            sdk = await self._session.conversation.sdk()
            uris = sorted(self._subscriptions)
            async with sdk.listening(tools=tools, prompts=prompts, resources=resources, uris=uris) as events:
                opening.deadline = math.inf
                # What changed between the last list and now was announced to nobody.
                for listed, heard in zip(KINDS, (tools, prompts, resources), strict=True):
                    if heard:
                        self.changed(listed)
                async for kind, uri in events:
                    updated(uri) if kind == "resource" else self.changed(kind)
        if opening.cancelled_caught:
            raise TimeoutError("the subscription was not acknowledged")
        return True
