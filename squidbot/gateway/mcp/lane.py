"""The short way of requests whose head was looked at a moment ago: the same client, in the same session, at the same part.

Nothing is left out: what depends on the head alone was found good and cannot have changed, and whatever can change is asked
again, of every wall and of the session. What is in the body is looked at as ever.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mcp_types import PROTOCOL_VERSION_META_KEY

from squidbot.gateway.mcp.exchange import Post, Reply, reply
from squidbot.gateway.mcp.post import Arrival, request_id
from squidbot.gateway.mcp.session import Session
from squidbot.gateway.mcp.sessions import State
from squidbot.gateway.mcp.wire import Malformed, decoded, encoded
from squidbot.gateway.walls import ShortPost, Wall


class Handshakes(Protocol):
    """Who deals with requests of the handshake era, whichever way they came."""

    def state_of(self, session: Session) -> State | None:
        """Of a session that is used now; None if it is over."""
        ...

    async def answer(
        self,
        arrival: Arrival,
        post: Post,
        message: Mapping[str, Any],
        name: str | int,
        session: Session,
        state: State,
        walls: Sequence[Wall] = (),
    ) -> None: ...


class Lane:
    """Satisfies `ShortWay` for one connection of a client of the handshake era."""

    __slots__ = ("_arrival", "_handshake", "_session", "_walls")

    def __init__(self, handshake: Handshakes, arrival: Arrival, walls: Sequence[Wall], session: Session) -> None:
        self._handshake = handshake
        self._arrival = arrival
        self._walls = tuple(walls)
        self._session = session

    def _is_open(self) -> bool:
        """Whether another request with the same head would get as far as this one did."""
        for wall in self._walls:  # noqa: SIM110  a generator for each call takes longer than the walls
            if not wall.still():
                return False
        return True

    async def serve(self, body: bytes, post: ShortPost) -> bool:
        """Answer a request; False, and nothing was done, for what has to go the long way."""
        try:
            message: Any = decoded(body)
        except Malformed:
            return False
        if type(message) is not dict or message.get("jsonrpc") != "2.0" or not self._is_open():
            return False
        name, method, params = request_id(message), message.get("method"), message.get("params")
        if name is None or type(method) is not str or not self._arrival.door.passes(method):
            return False
        if params is not None and (type(params) is not dict or not _is_of_this_era(params.get("_meta"))):
            return False
        state = self._handshake.state_of(self._session)
        if state is None:
            return False
        await self._handshake.answer(self._arrival, _Post(post), message, name, self._session, state, self._walls)
        return True


class _Post:
    """Satisfies `Post` over bytes alone."""

    __slots__ = ("_post", "leaving", "receive", "send")

    def __init__(self, post: ShortPost) -> None:
        self._post = post
        self.leaving = post.leaving
        self.send = post.send
        self.receive = post.receive

    async def reply(self, answer: Reply) -> None:
        if answer.status == 200 and answer.message is not None and not answer.headers:
            await self._post.finish(encoded(answer.message))
        else:
            await reply(self.send, answer)


def _is_of_this_era(meta: Any) -> bool:
    return meta is None or (type(meta) is dict and PROTOCOL_VERSION_META_KEY not in meta)
