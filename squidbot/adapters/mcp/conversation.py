"""What passes between a server and us beside our requests: the opening, and what the server asks and tells.

The opening, and the plain things that nearly every server says, are read here. All else goes through the SDK's own
session (`sdk_session.py`), which is loaded for the first server that needs it: most commands are done before that.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
from loguru import logger

from squidbot.adapters.mcp.apart import apart
from squidbot.adapters.mcp.attribution import UnderWay
from squidbot.adapters.mcp.callbacks import CLIENT, Callbacks
from squidbot.adapters.mcp.dispatcher import Wire
from squidbot.adapters.mcp.introduction import Introduction, initialized
from squidbot.adapters.mcp.protocol import HANDSHAKE_VERSIONS, LOG_LEVELS, MODERN_VERSIONS, VERSION_HEADER
from squidbot.core.domain.servers import ServerEvent, ServerLog

if TYPE_CHECKING:
    from squidbot.adapters.mcp.sdk_session import SDKSession

_LISTS = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))


class Conversation:
    """One wire, and whoever hears what comes on it unasked."""

    def __init__(
        self,
        wire: Wire,
        callbacks: Callbacks,
        *,
        server: str,
        capabilities: dict[str, Any],
        under_way: UnderWay | None = None,
    ) -> None:
        self.wire = wire
        self.capabilities = capabilities
        """What we offer to the server, as on the wire."""
        self.introduction: Introduction | None = None
        self._callbacks = callbacks
        self._server = server
        self._under_way = under_way or UnderWay()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._loading = anyio.Lock()
        self._sdk: SDKSession | None = None

    @asynccontextmanager
    async def begun(self) -> AsyncIterator["Conversation"]:
        """Hear the server, until left."""
        if hasattr(self.wire, "on_stream_exception"):  # the SDK's own dispatchers have it
            self.wire.on_stream_exception = self._on_fault
        async with anyio.create_task_group() as self._tasks:
            try:
                await self._tasks.start(self.wire.run, self._on_request, self._on_notify, self._intercept)
                yield self
            finally:
                self._tasks.cancel_scope.cancel()

    async def initialize(self) -> None:
        """Open in the handshake era. Raises MCPError, ValidationError, or RuntimeError where no revision is shared."""
        hello = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": self.capabilities,
            "clientInfo": CLIENT,
        }
        introduction = initialized(await self.wire.send_raw_request("initialize", hello, {"cancel_on_abandon": False}))
        self.introduction = introduction
        await self.wire.notify("notifications/initialized", None, {"headers": {VERSION_HEADER: introduction.protocol}})

    async def sdk(self) -> "SDKSession":
        """The SDK's session over the same wire."""
        async with self._loading:
            if self._sdk is None:
                live = await apart(_live)
                assert self._tasks is not None
                version = self.introduction.protocol if self.introduction else None
                self._sdk = await self._tasks.start(
                    live, self.wire, self._callbacks, self._server, self._under_way, self.capabilities, version
                )
            return self._sdk

    # What the server says

    async def _on_request(self, context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        if method == "ping" and not self._is_modern:
            return {}
        return await (await self.sdk()).on_request(context, method, params)

    async def _on_notify(self, context: Any, method: str, params: Mapping[str, Any] | None) -> None:
        """Pass on what the server tells; what is no valid notification is dropped."""
        said = params or {}
        if not isinstance(said.get("_meta"), Mapping | None):
            logger.bind(server=self._server).trace("server {!r} sent no valid {}", self._server, method)
            return
        match method, said:
            case "notifications/cancelled", _:
                return  # the dispatcher has seen to it
            case "notifications/message", {"level": str(level), "data": data} if level in LOG_LEVELS:
                name = said.get("logger")
                if isinstance(name, str | None):
                    await self._callbacks.tell(ServerLog(server=self._server, level=level, data=data, logger=name))  # type: ignore[arg-type]
                    self._event(method, said)
            case "notifications/resources/updated", {"uri": str()}:
                self._event(method, said)
            case _ if method in _LISTS:
                self._event(method, said)
            case _:
                await (await self.sdk()).on_notify(context, method, params)

    def _event(self, method: str, params: Mapping[str, Any]) -> None:
        self._callbacks.event(ServerEvent(self._server, "notification", method=method, params=dict(params)))

    def _intercept(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """What belongs to a subscription is taken in the order received; there is none before there is a session."""
        return self._sdk is not None and self._sdk.intercept(method, params)

    async def _on_fault(self, fault: Exception) -> None:
        self._callbacks.event(ServerEvent(self._server, "exception", error=fault))

    @property
    def _is_modern(self) -> bool:
        return self.introduction is not None and self.introduction.protocol in MODERN_VERSIONS


def _live() -> "Callable[..., Coroutine[Any, Any, None]]":
    """What keeps a session of the SDK's; it takes its time to load, and others are not kept waiting."""
    from squidbot.adapters.mcp.sdk_session import live

    return live
