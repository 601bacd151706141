"""A channel whose far end is the test itself."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from squidbot.adapters.mcp.channel import ChannelClosed, Frame


class ScriptedChannel:
    """Satisfies `Channel`. What was sent is in `sent`; `say` puts frames into the next `receive`."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.full = False
        """As if the peer did not read: a send waits for ever."""
        self.deaf: ChannelClosed | None = None
        """Why the peer takes nothing any more, if it does not."""
        self._frames: asyncio.Queue[list[Frame] | ChannelClosed] = asyncio.Queue()
        self._arrived = asyncio.Condition()

    async def receive(self) -> Sequence[Frame]:
        taken = await self._frames.get()
        if isinstance(taken, ChannelClosed):
            raise taken
        return taken

    async def send(self, frame: bytes, request_id: int | str | None) -> None:
        if self.deaf is not None:
            raise self.deaf
        if self.full:
            await asyncio.Event().wait()
        message = json.loads(frame)
        assert request_id == (message.get("id") if "method" in message else None)
        async with self._arrived:
            self.sent.append(message)
            self._arrived.notify_all()

    def say(self, *messages: dict[str, Any] | bytes | Frame) -> None:
        """What the peer sends, all at once: messages as they are meant, or frames as they are."""
        self._frames.put_nowait(
            [
                json.dumps({"jsonrpc": "2.0", **message}).encode() if isinstance(message, dict) else message
                for message in messages
            ]
        )

    def end(self, reason: str = "it exited with code 9") -> None:
        """The peer goes away."""
        self._frames.put_nowait(ChannelClosed(reason))

    async def heard(self, count: int, *, within: float = 5.0) -> list[dict[str, Any]]:
        """The messages that were sent, once there are `count` of them."""
        async with asyncio.timeout(within), self._arrived:
            await self._arrived.wait_for(lambda: len(self.sent) >= count)
        return self.sent

    async def request(self, method: str, *, within: float = 5.0) -> dict[str, Any]:
        """The first request of `method` that was sent, once there is one."""

        def found() -> list[dict[str, Any]]:
            return [message for message in self.sent if message.get("method") == method]

        async with asyncio.timeout(within), self._arrived:
            return (await self._arrived.wait_for(found))[0]
