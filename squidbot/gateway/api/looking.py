"""What the API shows: the desk's values in the shapes of the outer surface."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from squidbot.core.domain.audit import RecordFilter, record_json
from squidbot.core.domain.errors import InvalidArguments, NotFound, Problem
from squidbot.core.domain.members import Principal
from squidbot.core.domain.moments import MOMENTS, moment, stamp
from squidbot.core.domain.shapes import role_json, status_json, token_json, tool_json, verification_json
from squidbot.core.domain.tools import ToolDefinition
from squidbot.core.domain.views import ServerView
from squidbot.core.services.desk import Desk

Values = Mapping[str, Any]


async def status(desk: Desk, who: Principal, _values: Values) -> Any:
    """The gateway at a glance."""
    found = await desk.overview(who)
    return {**asdict(found), "started": stamp(datetime.fromtimestamp(found.started, UTC))}


async def settings(desk: Desk, who: Principal, _values: Values) -> Any:
    """Which settings are in force."""
    found = desk.settings(who)
    return {"file": found.file, "since": found.since, "ok": found.ok, "problems": [*found.problems]}


async def servers(desk: Desk, who: Principal, _values: Values) -> Any:
    """Every server, as `servers list` has it."""
    return [status_json(server.status, desk.clean) for server in desk.servers(who)]


async def server(desk: Desk, who: Principal, values: Values) -> Any:
    """One server, with its last words."""
    return server_details(desk, desk.server(who, values["server"]))


async def tools(desk: Desk, who: Principal, values: Values) -> Any:
    """The tools that whoever asks may see, as `tools list` has them."""
    return [tool_json(tool) for tool in await desk.tools_for(who, server=values.get("server"))]


async def tool(desk: Desk, who: Principal, values: Values) -> Any:
    """One tool; who may use it is told to those who may look."""
    wanted = values["tool"]
    if who.role is not None:
        own = await desk.tools_for(who)
        found = next((item for item in own if item.name == wanted), None)
        if found is None:
            raise NotFound("tool", wanted)
        return _tool_details(found)
    view = await desk.tool(who, wanted)
    more = {"tokens": view.tokens, "read_only": view.read_only, "roles": [asdict(may) for may in view.roles]}
    return {**_tool_details(view.definition), **more}


async def roles(desk: Desk, who: Principal, _values: Values) -> Any:
    """Every role, as `roles list` has it."""
    mapper = await desk.mapper(who)
    return [role_json(mapper, name) for name in mapper.roles]


async def role(desk: Desk, who: Principal, values: Values) -> Any:
    """One role, as `roles show` has it."""
    view, mapper = await desk.role(who, values["role"]), await desk.mapper(who)
    known = [{"name": tool.name, "server": tool.server, "tool": tool.tool} for tool in view.callable]
    return {**role_json(mapper, view.role.name), "callable": known, "tokens": view.tokens}


async def explain(desk: Desk, who: Principal, values: Values) -> Any:
    """Whether a role may, and why, as `roles explain` has it."""
    found = await desk.explain(who, values["role"], values["server"], values["tool"], values.get("arguments"))
    return asdict(found)


async def grants(desk: Desk, who: Principal, _values: Values) -> Any:
    """What the database grants and revokes above the settings."""
    return [asdict(change) for change in await desk.grants(who)]


async def calls(desk: Desk, who: Principal, values: Values) -> Any:
    """A page of records, newest first."""
    page = await desk.calls(who, record_filter(values), limit=values.get("limit", 50), cursor=values.get("cursor"))
    return {"records": [record_json(record) for record in page.records], "next": page.next}


async def call(desk: Desk, who: Principal, values: Values) -> Any:
    """One record."""
    return record_json(await desk.call(who, values["record"]))


async def usage(desk: Desk, who: Principal, values: Values) -> Any:
    """What each role made of each tool, as `audit stats` has it."""
    return [asdict(item) for item in await desk.usage(who, record_filter(values))]


async def series(desk: Desk, who: Principal, values: Values) -> Any:
    """Calls counted and timed, for a chart."""
    found = await desk.series(
        who, record_filter(values), seconds=values.get("seconds", 60), count=values.get("count", 60)
    )
    return asdict(found)


async def verify(desk: Desk, who: Principal, _values: Values) -> Any:
    """Whether the record is whole, as `audit verify` has it."""
    return verification_json(await desk.verify(who))


async def alerts(desk: Desk, who: Principal, values: Values) -> Any:
    """What was unusual, newest first."""
    return [asdict(alert) for alert in await desk.alerts(who, newest=values.get("limit", 50))]


async def tokens(desk: Desk, who: Principal, _values: Values) -> Any:
    """Whose tokens there are; never the tokens themselves."""
    return [token_json(token) for token in await desk.tokens(who)]


def record_filter(values: Values) -> RecordFilter:
    """Which records are wanted. Raises InvalidArguments."""
    return RecordFilter(
        role=values.get("role"),
        server=values.get("server"),
        tool=values.get("tool"),
        outcome=values.get("outcome"),
        kind=values.get("kind"),
        since=_moment("since", values),
        until=_moment("until", values),
    )


def server_details(desk: Desk, view: ServerView) -> dict[str, Any]:
    """One server with all that is known of it."""
    found = view.status
    return {
        **status_json(found, desk.clean),
        "hint": None if found.hint is None else desk.clean(found.hint),
        "since": found.since,
        "info": dict(found.info),
        "counters": dict(found.counters),
        "stderr": [*view.stderr],
    }


def _tool_details(tool: ToolDefinition) -> dict[str, Any]:
    more = {"title": tool.title, "output_schema": tool.output_schema, "annotations": dict(tool.annotations)}
    return {**tool_json(tool), **more}


def _moment(name: str, values: Values) -> str | None:
    text = values.get(name)
    if text is None:
        return None
    found = moment(text)
    if found is None:
        raise InvalidArguments("the request does not fit:", [Problem(name, "is no point in time", MOMENTS)])
    return found
