"""Happenings over Redis: what one gateway publishes, the others hear; what cannot be carried is counted, never waited for."""

import json
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
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
_TOGETHER: Final = 100_000
"""Bytes of happenings that are sent as one message."""
_DEADLINE: Final = 2.0
_PULSE: Final = 10.0
"""Seconds after which a silent connection is asked whether it is still there."""
_FIRST_REST: Final = 0.2
_LONGEST_REST: Final = 5.0
_QUIET: Final = 60.0
_TOPICS: Final = frozenset(get_args(Topic))
_LOCAL_TOPICS: Final = frozenset({"state", "settings", "progress"})
"""What concerns one gateway alone: how its own servers are, its own settings file, its own window."""
_ON_REQUEST: Final = frozenset({"call"})
"""What there is much of: carried only while somebody at another gateway listens."""
_WANT: Final = "want"
_ASKING: Final = 5.0
"""Seconds between two requests of whoever listens; for three times as long a request holds."""


class RedisRelay:
    """Satisfies `Relay` while its context is open; `heard` is told what other gateways say."""

    def __init__(
        self, url: str, *, heard: Callable[[Happening], None], listens: Callable[[Topic], bool] = lambda _: False
    ) -> None:
        self.dropped = 0
        """Happenings that were not carried."""
        self.listening = anyio.Event()
        """Set once the others are heard."""
        self._heard = heard
        self._listens = listens
        self._wanted: dict[str, float] = {}
        """Until when somebody listens at another gateway, by topic."""
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
        self._tasks.start_soon(self._ask_again)
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
        if self.carries(happening.topic):
            self._put(happening.topic, happening.server, happening.data)

    def carries(self, topic: Topic) -> bool:
        """Whether what happens under a topic is anything to the others."""
        if topic in _ON_REQUEST:
            return self._wanted.get(topic, float("-inf")) > anyio.current_time()
        return topic not in _LOCAL_TOPICS

    def ask(self) -> None:
        """Ask the others for what is carried only on request, if anybody listens to it here."""
        for topic in get_args(Topic):
            if topic in _ON_REQUEST and self._listens(topic):
                self._put(_WANT, None, {"topic": topic})

    def _put(self, topic: str, server: str | None, data: Mapping[str, Any]) -> None:
        try:
            text = json.dumps([self._id, topic, server, dict(data)], allow_nan=False)
            if len(text) > _LARGEST:
                raise ValueError("too large")
            self._send.send_nowait(text)
        except (TypeError, ValueError, anyio.WouldBlock, anyio.ClosedResourceError):
            self.dropped += 1

    async def _carry(self) -> None:
        async for first in self._outbox:
            lines, size = [first], len(first)
            with suppress(anyio.WouldBlock):
                while size < _TOGETHER:
                    lines.append(self._outbox.receive_nowait())
                    size += len(lines[-1])
            try:
                with anyio.fail_after(_DEADLINE):
                    await self._redis.publish(CHANNEL, "\n".join(lines))
            except (RedisError, OSError) as error:
                self.dropped += len(lines)
                self._lost(error)

    async def _ask_again(self) -> None:
        while True:
            self.ask()
            await anyio.sleep(_ASKING)

    async def _listen(self) -> None:
        """Hear the others for as long as it takes; a lost connection is made again, less and less eagerly."""
        rest = _FIRST_REST
        while True:
            try:
                async with self._redis.pubsub(ignore_subscribe_messages=True) as channel:
                    await channel.subscribe(CHANNEL)
                    self.listening.set()
                    self.ask()
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
                for line in message["data"].split(b"\n"):
                    happening = self._understood(line)
                    if happening is not None:
                        self._heard(happening)

    def _understood(self, line: bytes) -> Happening | None:
        """What another gateway said; None for our own echo, for a request of theirs, and for what no gateway says."""
        try:
            if len(line) > _LARGEST:
                return None
            origin, topic, server, details = json.loads(line)
        except (TypeError, ValueError):
            return None
        if topic == _WANT and origin != self._id and isinstance(details, dict) and details.get("topic") in _ON_REQUEST:
            self._wanted[details["topic"]] = anyio.current_time() + 3 * _ASKING
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
