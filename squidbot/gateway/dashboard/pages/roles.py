"""The grid of roles and tools, the rule behind each cell, and grants made and taken back."""

from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.responses import Response

from squidbot.core.domain.errors import InvalidArguments, NotFound, Problem
from squidbot.core.domain.roles import Decision
from squidbot.core.domain.tools import ToolId
from squidbot.core.domain.views import Grid
from squidbot.gateway.dashboard.gate import Visit
from squidbot.gateway.dashboard.view import Message
from squidbot.gateway.dashboard.words import one_line

_IN_DATABASE = "(database)"
_ALL = "*"
_MANY = 300
"""Tools, from which on one server's are shown at a time, unless all are asked for."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one role may do with one tool."""

    role: str
    verdict: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One tool, and all roles."""

    tool: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """The tools of one server."""

    server: str
    rows: tuple[Row, ...]


async def roles(visit: Visit) -> Response:
    """The grid, of all servers or of one."""
    grid = await visit.desk.grid(visit.who)
    mapper = await visit.desk.mapper(visit.who)
    names = list(dict.fromkeys(tool.server for tool in grid.tools))
    chosen = visit.asked("server")
    if not chosen and len(grid.tools) > _MANY:
        chosen = names[0]
    return await visit.page(
        "roles.html",
        "roles",
        topics="grants settings tools",
        roles=[mapper.roles[name] for name in grid.roles],
        groups=[_group(grid, name) for name in names if chosen in ("", _ALL, name)],
        server_names=names,
        server=chosen,
    )


async def explain(visit: Visit) -> Response:
    """Why one role may or may not use one tool."""
    role, server, tool = visit.asked("role"), visit.asked("server"), visit.asked("tool")
    grid = await visit.desk.grid(visit.who)
    which = ToolId(server, tool)
    known = (role, which) in grid.cells
    try:
        decision = grid.cells[role, which] if known else await visit.desk.explain(visit.who, role, server, tool)
    except NotFound as error:
        decision = Decision(False, role, server, tool, None, str(error))  # noqa: FBT003
    when = grid.conditions.get((role, which))
    if when:
        decision = Decision(decision.allowed, role, server, tool, decision.rule, f"{decision.reason}, when {when}")
    return await visit.page(
        "explain.html",
        "roles",
        decision=decision,
        verdict=_verdict(grid, role, which) if known else ("allowed" if decision.allowed else "refused"),
        changed=_is_changed(decision),
        known=known,
    )


async def change(visit: Visit) -> Response:
    """Grant or revoke what one cell stands for."""
    role, server, tool = (visit.form.get(name, "") for name in ("role", "server", "tool"))
    wanted = visit.form.get("change")
    if wanted not in ("grant", "revoke") or not tool:
        raise InvalidArguments("the form is not whole:", [Problem("change", "must be 'grant' or 'revoke', of a tool")])
    enabled = wanted == "grant"
    await visit.desk.change_grant(visit.who, role=role, server=server, tool=tool, enabled=enabled, origin="dashboard")
    done = "granted to" if enabled else "revoked from"
    text = f"{one_line(tool, 60)!r} of server {server!r} is {done} {role!r}, from now on."
    return await visit.go(f"/roles?{urlencode({'server': server})}", Message(text))


def _group(grid: Grid, server: str) -> Group:
    tools = [tool.id for tool in grid.tools if tool.server == server]
    return Group(
        server,
        tuple(
            Row(
                tool.tool,
                tuple(Cell(role, _verdict(grid, role, tool), _changed(grid, role, tool)) for role in grid.roles),
            )
            for tool in tools
        ),
    )


def _verdict(grid: Grid, role: str, tool: ToolId) -> str:
    if not grid.cells[role, tool].allowed:
        return "refused"
    return "conditional" if (role, tool) in grid.conditions else "allowed"


def _changed(grid: Grid, role: str, tool: ToolId) -> bool:
    return _is_changed(grid.cells[role, tool])


def _is_changed(decision: Decision) -> bool:
    return decision.rule is not None and decision.rule.endswith(_IN_DATABASE)
