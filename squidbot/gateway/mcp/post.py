"""One HTTP request on its arrival, and the errors that both eras answer with."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from mcp.server.runner import modern_error_data
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types import INVALID_REQUEST
from starlette.types import Receive, Send

from squidbot.core.domain.members import Principal
from squidbot.gateway.mcp.exchange import Company, Headers, Reply, reply
from squidbot.gateway.mcp.seal import Seal
from squidbot.gateway.mcp.server import DoorServer
from squidbot.gateway.walls import ShortWay, Wall

_JSON = frozenset({"*/*", "application/*", "application/json"})
_STREAM = frozenset({"*/*", "text/*", "text/event-stream"})
Note: TypeAlias = Callable[[Principal, str | None, Reply], Awaitable[None]]
"""Puts on record that somebody was answered so by a part of the door. Raises nothing."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request, from whom, to which part of the door."""

    headers: Mapping[str, str]
    raw: Sequence[tuple[bytes, bytes]]
    """The headers as they came, one by one."""
    principal: Principal
    server: str | None
    door: DoorServer
    seal: Seal
    send: Send
    receive: Receive
    note: Note
    leaving: set[Callable[[], object]] | None
    """Callbacks for when the client hangs up, if somebody calls them."""
    walls: Sequence[Wall] | None
    """Those that it has passed, if another one like it may take the short way."""
    learn: Callable[[ShortWay], None] | None
    """Takes that way, for the next requests of this connection with the same head."""
    company: Company
    """For what goes on beside the request, and ends with it."""

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The headers one by one, as text."""
        return [(name.decode("latin-1").lower(), value.decode("latin-1").strip()) for name, value in self.raw]

    async def reply(self, answer: Reply) -> None:
        """Answer."""
        await reply(self.send, answer)

    async def refuse(self, answer: Reply) -> None:
        """Answer a request that comes to nothing, and put that on record."""
        await self.note(self.principal, self.server, answer)
        await reply(self.send, answer)

    @property
    def accepts_stream(self) -> bool:
        return not _STREAM.isdisjoint(_accepted(self.headers.get("accept", "")))

    def unacceptable(self) -> Reply | None:
        """What is wrong with the headers of a POST, whatever is in it."""
        if not self.accepts_stream or _JSON.isdisjoint(_accepted(self.headers.get("accept", ""))):
            words = "Not Acceptable: Client must accept both application/json and text/event-stream"
            return failure(406, INVALID_REQUEST, words)
        given = self.headers.get("content-type", "")
        if given != "application/json" and given.split(";")[0].strip().lower() != "application/json":
            return failure(415, INVALID_REQUEST, "Unsupported Media Type: Content-Type must be application/json")
        return None


@lru_cache(maxsize=256)
def _accepted(header: str) -> frozenset[str]:
    """The kinds of answers that a client takes; a handful of clients ask in a handful of ways."""
    return frozenset(part.split(";")[0].strip().lower() for part in header.split(","))


def failure(
    status: int, code: int, message: str, *, data: Any = None, name: str | int | None = None, headers: Headers = ()
) -> Reply:
    """An error that is no answer of a server's."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return Reply(status, {"jsonrpc": "2.0", "id": name, "error": error}, headers)


async def outcome(work: Awaitable[Mapping[str, Any]], name: str | int, *, modern: bool) -> Reply:
    """The answer to a request: its result, or an error that says nothing of our insides."""
    try:
        return Reply(200, {"jsonrpc": "2.0", "id": name, "result": await work})
    except Exception as error:  # noqa: BLE001  whatever it is, the client gets an answer
        said = modern_error_data(error)
        status = ERROR_CODE_HTTP_STATUS.get(said.code, 200) if modern else 200
        return failure(status, said.code, said.message, data=said.data, name=name)


def request_id(message: Mapping[str, Any]) -> str | int | None:
    """The id of a request, if it has one that can be answered."""
    name = message.get("id")
    return name if isinstance(name, str | int) and not isinstance(name, bool) else None
