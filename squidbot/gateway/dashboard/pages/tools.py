"""The list of tools, one tool with all that is known of it, and trying it in a role."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from squidbot.core.domain.audit import outcome_of
from squidbot.core.domain.content import Content, ImageContent, text_of
from squidbot.core.domain.errors import NotAllowed, NotFound, NotRecorded, SquidbotError
from squidbot.core.domain.schemas import flat_parameters
from squidbot.core.domain.text import seen_and_unseen, visible
from squidbot.core.domain.tools import Parameter, ToolDefinition
from squidbot.core.domain.views import Called, ToolView
from squidbot.gateway.dashboard.fields import arguments_of, fields_of
from squidbot.gateway.dashboard.gate import Visit
from squidbot.gateway.dashboard.words import laid_out

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LARGEST_PICTURE = 2_000_000


@dataclass(frozen=True, slots=True)
class Listed:
    """One tool in the list."""

    server: str
    tool: str
    description: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Detailed:
    """One tool with all that is known of it."""

    server: str
    tool: str
    name: str
    description: str
    hidden: int
    """Characters of the description that nobody sees."""
    parameters: tuple[Parameter, ...]
    schema: str
    output_schema: str
    annotations: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One part of an answer: a picture, or text."""

    text: str = ""
    image: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a call from here."""

    role: str
    outcome: str
    record: str | None
    blocks: tuple[Block, ...] = ()
    structured: str = ""
    problem: str = ""
    hint: str | None = None


async def tools(visit: Visit) -> Response:
    """All tools, or those that fit."""
    known = await visit.desk.tools(visit.who)
    mapper = await visit.desk.mapper(visit.who)
    q, server, role = visit.asked("q"), visit.asked("server"), visit.asked("role")
    return await visit.page(
        "tools.html",
        "tools",
        topics="tools",
        tools=[_listed(view) for view in known if _fits(view, q.lower(), server, role)],
        total=len(known),
        server_names=list(dict.fromkeys(view.definition.server for view in known)),
        roles=list(mapper.roles),
        q=q,
        server=server,
        role=role,
    )


async def tool(visit: Visit) -> Response:
    """One tool."""
    return await _page(visit, await _found(visit))


async def try_tool(visit: Visit) -> Response:
    """Call it, in the role that the form names; the record has both names."""
    view = await _found(visit)
    role = visit.form.get("role", "")
    try:
        arguments = arguments_of(flat_parameters(view.definition.parameters), visit.form)
        called = await visit.desk.call_tool(visit.who, view.definition.name, arguments, role=role, origin="dashboard")
    except (NotAllowed, NotFound, NotRecorded):
        raise
    except SquidbotError as error:
        outcome = "limited" if type(error).__name__ == "RateLimited" else "refused"
        tried = Tried(role, outcome, error.record, problem=str(error), hint=error.hint)
    else:
        tried = _tried(role, called)
    return await _page(visit, view, tried=tried, chosen=role, sent=visit.form)


async def _found(visit: Visit) -> ToolView:
    server, name = visit.asked("server"), visit.asked("tool")
    known = await visit.desk.tools(visit.who, server=server)
    found = next((view for view in known if view.definition.tool == name), None)
    if found is None:
        error = NotFound("tool", name)
        error.hint = f"Server {server!r} does not offer it now; its earlier calls are still on record."
        raise error
    return found


async def _page(
    visit: Visit, view: ToolView, *, tried: Tried | None = None, chosen: str = "", sent: Mapping[str, str] | None = None
) -> Response:
    detailed = _detailed(view)
    mapper = await visit.desk.mapper(visit.who)
    return await visit.page(
        "tool.html",
        "tools",
        tool=detailed,
        tried=tried,
        roles=[*detailed.roles, *(role for role in mapper.roles if role not in detailed.roles)],
        chosen=chosen,
        form=fields_of([item for item in detailed.parameters if item.name not in view.definition.fixed], sent or {}),
    )


def _fits(view: ToolView, q: str, server: str, role: str) -> bool:
    definition = view.definition
    text = f"{definition.name} {definition.server}/{definition.tool} {definition.description}".lower()
    return (
        server in ("", definition.server)
        and all(word in text for word in q.split())
        and (not role or any(may.role == role for may in view.roles))
    )


def _listed(view: ToolView) -> Listed:
    definition = view.definition
    roles = tuple(may.role for may in view.roles)
    return Listed(definition.server, definition.tool, definition.description, roles)


def _detailed(view: ToolView) -> Detailed:
    definition = view.definition
    description = _as_it_came(definition)
    return Detailed(
        server=definition.server,
        tool=definition.tool,
        name=definition.name,
        description=description,
        hidden=sum(is_unseen for _, is_unseen in seen_and_unseen(description)),
        parameters=flat_parameters(definition.parameters),
        schema=_laid_out(definition.parameters),
        output_schema=_laid_out(definition.output_schema),
        annotations=_laid_out(definition.annotations),
        roles=tuple(may.role for may in view.roles),
    )


def _as_it_came(definition: ToolDefinition) -> str:
    """The description as the server wrote it, unless the settings have put another in its place."""
    came = definition.raw.get("description")
    return came if isinstance(came, str) and visible(came) == definition.description else definition.description


def _tried(role: str, called: Called) -> Tried:
    result = called.result
    return Tried(
        role=role,
        outcome=outcome_of(result),
        record=result.record,
        blocks=tuple(_block(block) for block in result.content),
        structured=_laid_out(result.structured),
    )


def _block(block: Content) -> Block:
    match block:
        case ImageContent(data=data, mime_type=kind) if kind in _PICTURES and len(data) <= _LARGEST_PICTURE:
            return Block(image=f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}")
        case _:
            return Block(text=text_of([block]))


def _laid_out(value: Any) -> str:
    try:
        return laid_out(value) if value else ""
    except (ValueError, RecursionError):
        return "too deep to be shown"
