"""Every server: how it is, since when, why, its last words, and a button that starts it anew."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import quote

from starlette.responses import Response

from squidbot.core.domain.errors import NotAllowed, NotFound, NotRecorded, SquidbotError
from squidbot.core.domain.views import ServerView
from squidbot.gateway.dashboard.gate import Visit
from squidbot.gateway.dashboard.view import Message
from squidbot.gateway.dashboard.words import NOTHING, ago, moment

_FIRST = ("calls", "failed", "restarts")


@dataclass(frozen=True, slots=True)
class Shown:
    """One server as the pages show it."""

    name: str
    state: str
    transport: str
    protocol: str | None
    tools: int | None
    error: str | None
    hint: str | None
    since: str | None
    for_: str
    calls_itself: str
    instructions: str | None
    counters: tuple[tuple[str, int], ...]
    stderr: str

    @classmethod
    def of(cls, view: ServerView, now: float) -> Self:
        status = view.status
        itself = [str(status.info[key]) for key in ("title", "name", "version") if status.info.get(key)]
        return cls(
            name=status.name,
            state=status.state,
            transport=status.transport,
            protocol=status.protocol,
            tools=status.tools,
            error=status.error,
            hint=status.hint,
            since=moment(status.since) if status.since else None,
            for_=ago(status.since, now) if status.since else NOTHING,
            calls_itself=" ".join(dict.fromkeys(itself)),
            instructions=status.instructions,
            counters=tuple(sorted(((name, number) for name, number in status.counters.items() if number), key=_place)),
            stderr="\n".join(view.stderr),
        )


def _place(counter: tuple[str, int]) -> int:
    """What everybody wants to know first."""
    return _FIRST.index(counter[0]) if counter[0] in _FIRST else len(_FIRST)


async def servers(visit: Visit) -> Response:
    """All of them."""
    now = visit.hall.now()
    shown = [Shown.of(view, now) for view in visit.desk.servers(visit.who)]
    return await visit.page("servers.html", "servers", topics="state tools settings", servers=shown)


async def restart(visit: Visit) -> Response:
    """End one and start it anew."""
    name = visit.request.path_params["name"]
    try:
        after = await visit.desk.restart(visit.who, name, origin="dashboard")
    except (NotAllowed, NotFound, NotRecorded):
        raise
    except SquidbotError as error:
        return await visit.go("/servers", Message(f"Server {name!r} did not come back: {error}", "bad", error.hint))
    message = Message(f"Server {name!r} was started anew; it is {after.status.state} now.")
    return await visit.go(f"/servers#server-{quote(name, safe='')}", message)
