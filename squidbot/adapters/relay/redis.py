"""Happenings over Redis: what one gateway publishes, the others hear; what cannot be carried is counted, never waited for."""

import json
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self, get_args
from urllib.parse import urlsplit

import anyio
from loguru import logger
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from squidbot.core.domain.happenings import Happening, Topic

CHANNEL: Final = "squidbot:happenings"
_BEHIND: Final = 1_000
"""Happenings that may wait to be carried; later ones are dropped until there is room."""
_LARGEST: Final = 1_000_000
"""Bytes of one happening, as sent and as believed."""
_DEADLINE: Final = 2.0
_PULSE: Final = 10.0
"""Seconds after which a silent connection is asked whether it is still there."""
_FIRST_REST: Final = 0.2
_LONGEST_REST: Final = 5.0
_QUIET: Final = 60.0
_TOPICS: Final = frozenset(get_args(Topic))
_LOCAL_TOPICS: Final = frozenset({"state", "settings", "progress"})
"""What concerns one gateway alone: how its own servers are, its own settings file, its own window."""


class RedisRelay:
    """Satisfies `Relay` while its context is open; `heard` is told what other gateways say."""

    def __init__(self, url: str, *, heard: Callable[[Happening], None]) -> None:
        self.dropped = 0
        """Happenings that were not carried."""
        self.listening = anyio.Event()
        """Set once the others are heard."""
        self._heard = heard
        self._id = uuid.uuid4().hex
        self._where = urlsplit(url).hostname or "this machine"
        self._redis: Redis = Redis.from_url(
            url, socket_connect_timeout=_DEADLINE, socket_timeout=_DEADLINE, health_check_interval=_PULSE, protocol=2
        )
        self._send, self._outbox = anyio.create_memory_object_stream[str](_BEHIND)
        self._told = float("-inf")
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._tasks.start_soon(self._carry)
        self._tasks.start_soon(self._listen)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.cancel_scope.cancel()
        try:
            # An error of whoever calls is none of ours: passed in here, it would come out wrapped in a group.
            await self._stack.aclose()
        finally:
            self._send.close()
            self._outbox.close()
            with anyio.move_on_after(_DEADLINE, shield=True):
                await self._redis.aclose()

    def send(self, happening: Happening) -> None:
        """Neither waits nor raises."""
        if happening.topic in _LOCAL_TOPICS:
            return
        try:
            text = json.dumps([self._id, happening.topic, happening.server, dict(happening.data)], allow_nan=False)
            if len(text) > _LARGEST:
                raise ValueError("too large")
            self._send.send_nowait(text)
        except (TypeError, ValueError, anyio.WouldBlock, anyio.ClosedResourceError):
            self.dropped += 1

    async def _carry(self) -> None:
        async for text in self._outbox:
            try:
                with anyio.fail_after(_DEADLINE):
                    await self._redis.publish(CHANNEL, text)
            except (RedisError, OSError) as error:
                self.dropped += 1
                self._lost(error)

    async def _listen(self) -> None:
        """Hear the others for as long as it takes; a lost connection is made again, less and less eagerly."""
        rest = _FIRST_REST
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as channel:
                    await channel.subscribe(CHANNEL)
                    self.listening.set()
                    rest = _FIRST_REST
                    await self._hear(channel)
            except (RedisError, OSError) as error:
                self._lost(error)
            await anyio.sleep(rest)
            rest = min(rest * 2, _LONGEST_REST)

    async def _hear(self, channel: PubSub) -> None:
        while True:
            message = await channel.get_message(ignore_subscribe_messages=True, timeout=1.0)
            if message is not None and message["type"] == "message":
                happening = self._understood(message["data"])
                if happening is not None:
                    self._heard(happening)

    def _understood(self, data: Any) -> Happening | None:
        """What another gateway said; None for our own echo, and for what no gateway says."""
        try:
            if len(data) > _LARGEST:
                return None
            origin, topic, server, details = json.loads(data)
        except (TypeError, ValueError):
            return None
        known = origin != self._id and isinstance(topic, str) and topic in _TOPICS
        if not known or not isinstance(details, dict) or not (server is None or isinstance(server, str)):
            return None
        return Happening(topic, server, details)

    def _lost(self, error: Exception) -> None:
        now = anyio.current_time()
        if now >= self._told + _QUIET:
            self._told = now
            logger.warning("Redis at {} does not carry: other gateways hear late ({!r:.200})", self._where, error)
