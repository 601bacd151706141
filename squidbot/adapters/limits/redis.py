"""Rate limits that several gateways share, counted in Redis.

One script decides about all limits of a call at once, so the count is exact however many gateways ask. Calls that come
while Redis is being asked are asked about together: a question about fifty calls takes hardly longer than one about one.

The clock. Redis knows only the date, and a date can be set: a step of an hour would fill every bucket, or none for an
hour. So no date is asked. Redis keeps one number, the shared time, and every process adds to it what passed on its own
monotonic clock: with each answer it learns what the shared time was at least when the answer came (its offset), and
with each call it says what the time must be by now; Redis keeps the latest of what it was told. No process can be ahead
of true time, because an answer is older when it is read than when it was given; so the shared time never runs faster
than a real clock, and it moves as long as anybody calls. What a process learned is kept for its host until the next
boot, so that many short commands count as one. A host that was never seen finds the time as the others left it.

Places for calls that run side by side are leases, renewed while the call runs: a gateway that is killed frees its own.
Keys expire a day after they could matter; that is the only use of the date. Without Redis, calls that change things are
refused and others pass, unless the limit says otherwise.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

import anyio
from loguru import logger
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from squidbot.core.domain.errors import RateLimited
from squidbot.core.domain.limits import Limit, limits_of, refusal
from squidbot.core.domain.tools import ToolId
from squidbot.core.ports import Clock
from squidbot.core.services.chance import random_bytes

DEADLINE: Final = 0.5
"""Seconds for one question to Redis."""
REST: Final = 1.0
"""Seconds in which a Redis that did not answer is not asked again."""
LEASE: Final = 10.0
"""Seconds after which the places of a gateway that is gone are free again."""
_RENEWAL: Final = LEASE / 4
_CONNECTIONS: Final = 4
"""One question after the other, so that what is given back is never given back too soon; and what renews beside them."""
_MOST_TOGETHER: Final = 256
"""Calls that one question is about."""
_QUIET: Final = 60.0
"""Seconds in which it is not said again that Redis is gone."""
_MOST_MATCHES: Final = 10_000
_MICRO: Final = 1_000_000
_DAY_MS: Final = 86_400_000
_CLOCK: Final = "{squidbot}:clock"
"""The braces keep all keys in one slot of a cluster, as a script needs them."""
_SCRIPT: Final = Path(__file__).with_name("acquire.lua").read_text("utf-8")
_SHA: Final = hashlib.sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()
"""By which Redis knows the script."""


class _Unreachable(Exception):
    """Redis did not answer."""


class _Match(NamedTuple):
    """The limits that concern a pair of role and tool, as the script takes them."""

    limits: tuple[Limit, ...]
    keys: tuple[str, ...]
    life: int
    numbers: tuple[float, ...]
    places: tuple[str, ...]
    """The keys of those limits that have places."""


class _Verdict(NamedTuple):
    """What Redis says of one call: how long to wait, which limit refuses (0: none), and whether for want of a place."""

    wait: int
    refusing: int
    busy: int


class _Ticket(NamedTuple):
    """A call that waits to be asked about."""

    match: _Match
    lease: str
    verdict: "asyncio.Future[_Verdict]"


class _Place:
    """The places of one call; given back once, however often it is asked."""

    __slots__ = ("_lease", "_limiter")

    def __init__(self, limiter: "RedisRateLimiter | None", lease: str) -> None:
        self._limiter = limiter
        self._lease = lease

    async def release(self) -> None:
        limiter, self._limiter = self._limiter, None
        if limiter is not None:
            limiter.give_back(self._lease)


class RedisRateLimiter:
    """Satisfies `RateLimiter` while its context is open."""

    def __init__(self, limits: Sequence[Limit], *, url: str, clock: Clock, host: str | None = None) -> None:
        self._limits = tuple(limits)
        self._clock = clock
        self._host = this_host() if host is None else host
        self._where = urlsplit(url).hostname or "this machine"
        self._redis: Redis = Redis.from_url(
            url,
            max_connections=_CONNECTIONS,
            socket_connect_timeout=DEADLINE,
            socket_timeout=DEADLINE,
            # A connection that Redis has closed meanwhile is noticed only in use, and is no reason to refuse a call.
            retry=Retry(NoBackoff(), 1),
            protocol=2,
        )
        self._waiting: deque[_Ticket] = deque()
        self._left: dict[str, tuple[str, ...]] = {}
        """Places to be given back with the next question, by their lease."""
        self._asks = False
        self._matches: dict[tuple[str, ToolId], _Match] = {}
        self._held: dict[str, tuple[str, ...]] = {}
        self._offset: int | None = None
        self._rests_until = self._silent_until = float("-inf")
        self._gone = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._tasks.start_soon(self._renew)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.cancel_scope.cancel()
        try:
            # An error of whoever calls is none of ours: passed in here, it would come out wrapped in a group.
            await self._stack.aclose()
        finally:
            _tell(self._waiting, _Unreachable())
            with anyio.CancelScope(shield=True):
                self._left |= self._held
                self._held.clear()
                if self._left:
                    with suppress(_Unreachable):
                        await self._asked(partial(self._question, ()))
                with anyio.move_on_after(DEADLINE):
                    await self._redis.aclose()

    def replace(self, limits: Sequence[Limit]) -> None:
        """Take other limits; of those that stay as they are, the count goes on in Redis."""
        self._limits = tuple(limits)
        self._matches.clear()

    async def acquire(self, role: str, tool: ToolId, *, changes: bool = True) -> _Place:
        """Take one call from every limit that concerns it, or from none. Raises RateLimited."""
        match = self._matches.get((role, tool)) or self._match(role, tool)
        if not match.limits:
            return _Place(None, "")
        ticket = _Ticket(match, random_bytes(16).hex(), asyncio.get_running_loop().create_future())
        if match.places:
            self._held[ticket.lease] = match.places
        self._waiting.append(ticket)
        self._ask()
        try:
            verdict = await ticket.verdict
        except _Unreachable:
            self._held.pop(ticket.lease, None)
            if all(limit.passes_unreachable(changes=changes) for limit in match.limits):
                return _Place(None, "")
            raise _uncounted(tool) from None
        except BaseException:
            # Cancelled: whether the place was taken nobody knows, so it is given back.
            self.give_back(ticket.lease)
            raise
        if verdict.refusing:
            self._held.pop(ticket.lease, None)
            limit = match.limits[verdict.refusing - 1]
            raise refusal(role, limit, verdict.wait / _MICRO, busy=bool(verdict.busy))
        return _Place(self, ticket.lease)

    def give_back(self, lease: str) -> None:
        """Free the places of a lease; if Redis cannot be told, they lapse."""
        places = self._held.pop(lease, ())
        if places:
            self._left[lease] = places
            self._ask()

    # Asking

    def _ask(self) -> None:
        """See to it that what waits is asked, together with what else comes in this turn of the loop."""
        if not self._asks:
            self._asks = True
            self._tasks.start_soon(self._serve)

    async def _serve(self) -> None:
        tickets: list[_Ticket] = []
        try:
            while self._waiting or self._left:
                count = min(len(self._waiting), _MOST_TOGETHER)
                tickets = [self._waiting.popleft() for _ in range(count)]
                try:
                    await self._asked(partial(self._question, tickets))
                except Exception as error:  # noqa: BLE001  whatever it is, it concerns these calls alone
                    self._left.clear()  # what cannot be given back lapses
                    _tell(tickets, error)
        finally:
            self._asks = False
            _tell(tickets, _Unreachable())

    async def _question(self, tickets: Sequence[_Ticket]) -> None:
        """Give back what was left, ask about these calls, and tell each what was said."""
        left, self._left = self._left, {}
        freed: dict[str, list[str]] = {}
        for lease, places in left.items():
            for key in places:
                freed.setdefault(key, []).append(lease)
        groups: dict[int, list[_Ticket]] = {}
        for ticket in tickets:
            if not ticket.verdict.done():
                groups.setdefault(id(ticket.match), []).append(ticket)
        if not groups and not freed:
            return
        answers = await self._sent(freed, [self._words(group) for group in groups.values()])
        for group, (now, known, *said) in zip(groups.values(), answers, strict=True):
            await self._learn(now, is_known=bool(known))
            for place, ticket in enumerate(group):
                if not ticket.verdict.done():
                    ticket.verdict.set_result(_Verdict(*said[3 * place : 3 * place + 3]))

    def _words(self, group: Sequence[_Ticket]) -> tuple[Any, ...]:
        """The question about calls that the same limits concern."""
        match = group[0].match
        offset = "" if self._offset is None else self._offset
        first = (self._host, self._here(), offset, int(LEASE * _MICRO), match.life)
        leases = (ticket.lease for ticket in group)
        return len(match.keys) + 1, _CLOCK, *match.keys, *first, *match.numbers, *leases

    async def _sent(self, freed: Mapping[str, Sequence[str]], questions: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What the script says to each of the questions."""
        try:
            return await self._piped(freed, questions)
        except NoScriptError:  # nothing was taken: Redis was restarted, or never heard of it
            await self._redis.script_load(_SCRIPT)
            return await self._piped({}, questions)

    async def _piped(self, freed: Mapping[str, Sequence[str]], questions: Sequence[tuple[Any, ...]]) -> list[Any]:
        async with self._redis.pipeline(transaction=False) as pipe:
            for key, leases in freed.items():
                pipe.zrem(key, *leases)
            for count, *words in questions:
                pipe.evalsha(_SHA, count, *words)
            answers: list[Any] = await pipe.execute()
        return answers[len(freed) :]

    async def _learn(self, now: int, *, is_known: bool) -> None:
        """What the time was at least."""
        first = self._offset is None
        fresh = now - self._here()
        if self._offset is None or fresh > self._offset:
            self._offset = fresh
        if self._host and first and not is_known:
            # Whoever comes next from this host may be a process that makes one call and ends.
            await self._redis.hset(_CLOCK, self._host, str(self._offset))

    async def _renew(self) -> None:
        while True:
            await anyio.sleep(_RENEWAL)
            if self._held and self._offset is not None:
                with suppress(_Unreachable):  # said in the log already; leases lapse by themselves
                    await self._asked(self._prolong)

    async def _prolong(self) -> None:
        until = self._here() + (self._offset or 0) + int(LEASE * _MICRO)
        async with self._redis.pipeline(transaction=False) as pipe:
            for lease, places in self._held.items():
                for key in places:
                    # Only what is there: one that was given back just now must not come to life again.
                    pipe.zadd(key, {lease: until}, xx=True)
                    pipe.pexpire(key, _DAY_MS)
            await pipe.execute()

    async def _asked(self, question: Callable[[], Awaitable[None]]) -> None:
        """Ask Redis, within the deadline. Raises _Unreachable, at once if it was silent a moment ago."""
        if self._clock.monotonic() < self._rests_until:
            raise _Unreachable
        try:
            with anyio.fail_after(DEADLINE):
                await question()
        except (RedisError, OSError) as error:  # a TimeoutError is an OSError
            self._lost(error)
            raise _Unreachable from error
        if self._gone:
            self._gone = False
            logger.warning("Redis at {} answers again: limits are counted", self._where)

    def _lost(self, error: Exception) -> None:
        now = self._clock.monotonic()
        self._rests_until = now + REST
        self._gone = True
        if now >= self._silent_until:
            self._silent_until = now + _QUIET
            reason = f"no answer in {DEADLINE:g} s" if isinstance(error, TimeoutError) else f"{error!r:.200}"
            logger.warning(
                "Redis at {} cannot count calls ({}): those that change things are refused until it can",
                self._where,
                reason,
            )

    def _here(self) -> int:
        return int(self._clock.monotonic() * _MICRO)

    def _match(self, role: str, tool: ToolId) -> _Match:
        if len(self._matches) >= _MOST_MATCHES:
            self._matches.clear()
        concerned = [limit for limit in limits_of(role, self._limits) if limit.concerns(role, tool)]
        limits = tuple({limit.key: limit for limit in concerned}.values())
        keys = [
            (f"{{squidbot}}:rate:{name}", f"{{squidbot}}:places:{name}")
            for name in (_name(role, limit) for limit in limits)
        ]
        match = self._matches[role, tool] = _Match(
            limits=limits,
            keys=tuple(key for pair in keys for key in pair),
            life=_DAY_MS + int(max((limit.burst * limit.interval for limit in limits), default=0.0) * 1000),
            numbers=tuple(
                number for limit in limits for number in (limit.interval * _MICRO, limit.burst, limit.concurrency or 0)
            ),
            places=tuple(places for limit, (_, places) in zip(limits, keys, strict=True) if limit.concurrency),
        )
        return match


def _tell(tickets: Iterable[_Ticket], error: Exception) -> None:
    """Tell those that were not told anything yet."""
    for ticket in tickets:
        if not ticket.verdict.done():
            ticket.verdict.set_exception(error)


def this_host() -> str:
    """Names the monotonic clock that this process shares with others; '' where it cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"host:{boot}:{Path('/proc/self/ns/time').readlink()}"
    except OSError:
        return ""


def _name(role: str, limit: Limit) -> str:
    """Tells one role's count of one limit from all others; the role stays readable."""
    return f"{role}:{hashlib.sha256(limit.key.encode()).hexdigest()[:16]}"


def _uncounted(tool: ToolId) -> RateLimited:
    error = RateLimited(
        f"calls cannot be counted at the moment, and {tool} is not called uncounted; try again in {REST:g} s",
        retry_after=REST,
    )
    error.hint = "Redis does not answer; 'on_failure' of a limit says what becomes of calls then."
    return error
