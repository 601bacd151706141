"""The end of a pipe comes when what was asked through it is answered: `printf '…' | squidbot serve` gets its answers."""

from collections.abc import Mapping
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

ENDLESS = "subscriptions/listen"
"""A request that is never answered of itself."""


class Asked:
    """Which requests of a client are under way."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._names: set[Any] = set()
        self._fewer = anyio.Event()

    def heard(self, item: SessionMessage | Exception) -> None:
        """Take note of what the client said."""
        match item.message if isinstance(item, SessionMessage) else None:
            case JSONRPCRequest(id=name, method=method) if method != ENDLESS:
                self._names.add(name)
            case JSONRPCNotification(method="notifications/cancelled", params=Mapping() as params):
                self._forget(params.get("requestId"))
            case _:
                pass

    def said(self, item: SessionMessage) -> None:
        """Take note of what the client is told."""
        match item.message:
            case JSONRPCResponse(id=name) | JSONRPCError(id=name):
                self._forget(name)
            case _:
                pass

    async def answered(self) -> None:
        """Wait until nothing is under way, but not for ever."""
        with anyio.move_on_after(self._patience):
            while self._names:
                self._fewer = anyio.Event()
                await self._fewer.wait()

    def _forget(self, name: Any) -> None:
        if isinstance(name, str | int):
            self._names.discard(name)
            self._fewer.set()


class Reading:
    """Satisfies the SDK's `ReadStream`."""

    def __init__(self, stream: Any, asked: Asked) -> None:
        self._stream = stream
        self._asked = asked

    async def receive(self) -> SessionMessage | Exception:
        try:
            item: SessionMessage | Exception = await self._stream.receive()
        except anyio.EndOfStream:
            await self._asked.answered()
            raise
        self._asked.heard(item)
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Writing:
    """Satisfies the SDK's `WriteStream`."""

    def __init__(self, stream: Any, asked: Asked) -> None:
        self._stream = stream
        self._asked = asked

    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(item)
        self._asked.said(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
