"""The gateway as a process: it opens everything, serves, takes up new settings, and leaves nothing behind."""

import asyncio
import gc
import signal
import socket
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from starlette.types import ASGIApp

from squidbot.gateway.draining import Draining
from squidbot.gateway.wire import HTTPServer

GRACE: Final = 8.5
"""Seconds that calls under way are given at the end: the rest of the ten in which a gateway is gone is for what is cut off
then. Servers that nobody waits for end meanwhile, and what is left of them at the curfew has little time."""
_ANSWERED: Final = 0.7
"""Seconds after the curfew in which clients must have read what they were told."""
_NEW_OBJECTS: Final = 20_000
"""Objects more than were before, at which garbage is looked for; Python's own 700 are made by ten calls side by side."""
_WATCH: Final = 1.0
"""Seconds between two looks at the settings."""
_ENDS: Final = (signal.SIGTERM, signal.SIGINT)


def _nothing() -> None:
    pass


async def _nobody() -> None:
    pass


async def _no_link(_url: str) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Gateway:
    """What a gateway is made of; nothing of it is open before `run`."""

    lifetimes: Sequence[AbstractAsyncContextManager[Any]]
    """Entered in this order before anybody is answered, and left in the other when nobody is."""
    app: Callable[[], ASGIApp]
    """Made once all of that is open."""
    start: Callable[[], Awaitable[object]]
    """Connects the servers; nobody waits for it."""
    changed: Callable[[], Awaitable[bool]]
    """Whether the settings are others than they were."""
    reload: Callable[[], Awaitable[object]]
    """Takes up the settings anew. Raises nothing: a broken file is reported, and the old settings stay."""
    beside: Sequence[Callable[[], Awaitable[object]]] = ()
    """What runs as long as the gateway serves."""
    sign_in: Callable[[str], Awaitable[str | None]] = _no_link
    """The address at which an admin is signed in, once."""
    drain: Callable[[], None] = _nothing
    """Ends the streams that never end by themselves."""
    let_go: Callable[[], Awaitable[object]] = _nobody
    """Ends what nobody waits for any more, and begins nothing."""
    hurry: Callable[[], None] = _nothing
    """What has not ended by now gets little time."""
    say: Callable[[str], None] = field(default=lambda _: None)
    """Tells the person at the terminal what goes on."""

    async def run(self, listener: socket.socket, *, url: str, ready: Callable[[str | None], None]) -> int:
        """Serve until a signal says to end; which one it was. `ready` is given the address that signs an admin in."""
        with anyio.open_signal_receiver(*_ENDS, signal.SIGHUP) as signals:
            async with AsyncExitStack() as stack:
                for part in self.lifetimes:
                    await stack.enter_async_context(part)
                draining = Draining(self.app())
                _collect_seldom()
                link = await self.sign_in(url)
                return await self._serve(listener, draining, signals, lambda: ready(link))

    async def _serve(
        self,
        listener: socket.socket,
        draining: Draining,
        signals: AsyncIterable[signal.Signals],
        ready: Callable[[], None],
    ) -> int:
        server = HTTPServer(draining)
        over = anyio.Event()

        async def serve() -> None:
            # Asked to end, never cancelled: what is answered is answered to its end.
            with anyio.CancelScope(shield=True):
                await server.serve(sockets=[listener])
            over.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            try:
                await server.ready.wait()
                for work in (self.start, self._watch, *self.beside):
                    tasks.start_soon(_awaited, work)
                ready()
                number = await self._until_told(signals)
                await self._finish(draining, server)
            finally:
                server.should_exit = True
                draining.closing = True
                draining.cut_off()
            await over.wait()
            tasks.cancel_scope.cancel()
        return number

    async def _until_told(self, signals: AsyncIterable[signal.Signals]) -> int:
        async for number in signals:
            if number in _ENDS:
                return int(number)
            self.say("SIGHUP: taking up the settings anew")
            await self.reload()
        raise AssertionError("signals end only with the process")

    async def _finish(self, draining: Draining, server: HTTPServer) -> None:
        """Let calls end, unless a second signal says that there is no time."""
        loop = asyncio.get_running_loop()

        def curfew() -> None:
            self.hurry()
            loop.call_later(_ANSWERED, server.give_up)

        def at_once() -> None:
            self.say("ending at once")
            draining.cut_off()
            curfew()

        # In the place of those who waited for the first one, and for longer than this: also while servers end.
        for number in _ENDS:
            loop.add_signal_handler(number, at_once)
        loop.call_later(GRACE, curfew)
        if draining.calls:
            words = f"{draining.calls} calls are under way and get up to {GRACE:g} s; once more ends them at once"
            self.say(f"shutting down: {words}")
        draining.closing = True
        self.drain()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_awaited, self.let_go)
            left = await draining.finish(GRACE)
            tasks.cancel_scope.cancel()
        if left:
            self.say(f"{left} calls did not end in time and were cut off")

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(_WATCH)
            if await self.changed():
                await self.reload()


def _collect_seldom() -> None:
    """Leave what is there for good out of each search for garbage, and search when there may be some: calls leave hardly any."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 20)


async def _awaited(work: Callable[[], Awaitable[object]]) -> None:
    await work()
