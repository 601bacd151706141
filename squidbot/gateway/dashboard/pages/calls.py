"""The audit trail: the newest calls as they come, all of them with filters, one whole record, and the proof."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import get_args
from urllib.parse import urlencode

from starlette.responses import Response

from squidbot.core.domain.audit import OUTCOMES, RecordFilter, RecordKind, Verification
from squidbot.core.domain.errors import InvalidArguments
from squidbot.core.domain.sign_in import span
from squidbot.core.domain.views import RecordPage
from squidbot.gateway.dashboard.gate import Visit, prefix_of
from squidbot.gateway.dashboard.view import Message
from squidbot.gateway.dashboard.words import moment, one_line

KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
_AT_ONCE = 50
_ASKED = ("role", "server", "tool", "outcome", "kind", "since")


async def calls(visit: Visit) -> Response:
    """A page of records, the newest first."""
    return await _page(visit)


async def verify(visit: Visit) -> Response:
    """Whether the record is whole: it changes nothing, but it takes its time."""
    return await _page(visit, verification=await visit.desk.verify(visit.who))


async def call(visit: Visit) -> Response:
    """One whole record."""
    record = await visit.desk.call(visit.who, visit.asked("id"))
    return await visit.page("call.html", "calls", call=record, names=await names_of(visit))


async def names_of(visit: Visit) -> dict[str | None, str]:
    """What each member is called; who has no token any more keeps the id."""
    return {token.member: token.name for token in await visit.desk.tokens(visit.who)}


async def _page(visit: Visit, *, verification: Verification | None = None) -> Response:
    wanted, trouble = _wanted(visit)
    cursor = visit.asked("after", 2_000) or None
    try:
        found = await visit.desk.calls(visit.who, wanted, limit=_AT_ONCE, cursor=cursor)
    except InvalidArguments as error:
        found, trouble = RecordPage((), None), Message(str(error), "warn", "Begin at the newest.")
    asked = {name: visit.asked(name) for name in _ASKED if visit.asked(name)}
    overall = {view.status.name for view in visit.desk.servers(visit.who)}
    mapper = await visit.desk.mapper(visit.who)
    return await visit.page(
        "calls.html",
        "calls",
        topics="call progress",
        say=trouble,
        calls=found.records,
        names=await names_of(visit),
        wanted=wanted,
        since=visit.asked("since", 40),
        outcomes=OUTCOMES,
        kinds=KINDS,
        roles=list(mapper.roles),
        server_names=sorted(overall),
        is_filtered=bool(asked),
        is_live=not asked and cursor is None,
        is_first=cursor is None,
        verification=verification,
        first_bad=_described(verification),
        older=_link(visit, {**asked, "after": found.next}) if found.next else None,
        newest=_link(visit, asked) if cursor is not None else None,
    )


def _wanted(visit: Visit) -> tuple[RecordFilter, Message | None]:
    """What the filters ask for, and what is wrong with them."""
    outcome = next((one for one in OUTCOMES if one == visit.asked("outcome")), None)
    kind = next((one for one in KINDS if one == visit.asked("kind")), None)
    since, trouble = visit.asked("since", 40), None
    stamp = _stamp(since, visit.hall.now()) if since else None
    if since and stamp is None:
        text = f"{one_line(since, 40)!r} is no time: everything is shown."
        trouble = Message(text, "warn", "Write it as 90m, 24h, 7d, or as a date such as 2026-11-18.")
    wanted = RecordFilter(
        role=visit.asked("role") or None,
        server=visit.asked("server") or None,
        tool=visit.asked("tool") or None,
        outcome=outcome,
        kind=kind,
        since=stamp,
    )
    return wanted, trouble


def _stamp(text: str, now: float) -> str | None:
    seconds = span(text)
    if seconds is not None:
        return moment(now - seconds)
    try:
        at = datetime.fromisoformat(text)
        return moment((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def _link(visit: Visit, query: Mapping[str, str | None]) -> str:
    asked = {name: value for name, value in query.items() if value}
    return f"{prefix_of(visit.request)}/calls{'?' if asked else ''}{urlencode(asked, errors='replace')}"


def _described(verification: Verification | None) -> str:
    """The first row that is not as it was written, in words."""
    bad = verification.first_bad if verification is not None else None
    return ", ".join(f"{name}: {value}" for name, value in bad.items()) if bad else ""
