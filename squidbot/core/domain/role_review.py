"""Questions about the grants as a whole: what hangs in the air, what a change would do, what flows together."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, TypeAlias

from squidbot.core.domain.conditions import described
from squidbot.core.domain.roles import MCPToolMapper
from squidbot.core.domain.tools import ToolId

Leg: TypeAlias = Literal["untrusted", "private", "egress"]
LEGS: tuple[Leg, ...] = ("untrusted", "private", "egress")
"""Reads what strangers wrote; reads what is nobody's business; writes where others read. All three are a way out."""


@dataclass(frozen=True, slots=True)
class Dangling:
    """A grant that no tool answers to."""

    role: str
    server: str
    tool: str
    source: str
    nearest: str | None


class Granted(NamedTuple):
    """One grant, to be compared."""

    role: str
    server: str
    tool: str
    when: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded call to be decided anew."""

    role: str
    tool: ToolId
    arguments: Mapping[str, Any] | None
    """None if the record has them only in part."""
    refused: bool


@dataclass(frozen=True, slots=True)
class Turned:
    """Recorded calls of one kind that a change would decide the other way."""

    role: str
    server: str
    tool: str
    calls: int
    reason: str


def dangling(mapper: MCPToolMapper, tools: Mapping[str, Collection[str]], *, known: Collection[str]) -> list[Dangling]:
    """Grants that no tool answers to. `tools` are those of the servers that answered, `known` all servers there are.

    A shipped grant of a server that nobody has set up waits for it; one of the settings is a mistake.
    """
    found = []
    for role in mapper.roles.values():
        for grant in role.grants:
            if grant.server not in known:
                if grant.source != "shipped":
                    near = next(iter(get_close_matches(grant.server, known, n=1)), None)
                    found.append(Dangling(role.name, grant.server, grant.tool, grant.source, near))
            elif grant.server in tools and not any(fnmatchcase(tool, grant.tool) for tool in tools[grant.server]):
                near = next(iter(get_close_matches(grant.tool, tools[grant.server], n=1)), None)
                found.append(Dangling(role.name, grant.server, grant.tool, grant.source, near))
    for change in mapper.changes:
        names = tools.get(change.server, ())
        gone = change.server not in known or (change.server in tools and not _any_matches(names, change.tool))
        if change.enabled and gone:
            near = next(iter(get_close_matches(change.tool, names, n=1)), None)
            found.append(Dangling(change.role, change.server, change.tool, "database", near))
    return found


def ungranted(mapper: MCPToolMapper, tools: Mapping[str, Collection[str]]) -> list[ToolId]:
    """Tools that no role may use."""
    return [
        ToolId(server, tool)
        for server, names in tools.items()
        for tool in names
        if not any(mapper.can_use_tool(role, server, tool) for role in mapper.roles)
    ]


def difference(before: MCPToolMapper, after: MCPToolMapper) -> tuple[list[Granted], list[Granted]]:
    """What `after` grants more, and what less."""
    old, new = _granted(before), _granted(after)
    return sorted(new - old), sorted(old - new)


def simulate(calls: Iterable[Replayed], after: MCPToolMapper) -> tuple[list[Turned], list[Turned]]:
    """Recorded calls that would now be refused, and those refused then that would now be allowed."""
    refused: Counter[tuple[str, ToolId, str]] = Counter()
    allowed: Counter[tuple[str, ToolId, str]] = Counter()
    for call in calls:
        decision = after.decide(call.role, call.tool.server, call.tool.tool, call.arguments)
        if decision.allowed == call.refused:
            (allowed if decision.allowed else refused)[call.role, call.tool, decision.reason] += 1
    return _turned(refused), _turned(allowed)


def legs_of(
    mapper: MCPToolMapper,
    role: str,
    tools: Mapping[str, Collection[str]],
    labels: Mapping[str, Mapping[Leg, Sequence[str]]],
) -> dict[Leg, list[ToolId]]:
    """Which tools give a role each of the three legs on which data can walk out."""
    return {
        leg: [
            ToolId(server, tool)
            for server, names in tools.items()
            for tool in sorted(names)
            if any(fnmatchcase(tool, glob) for glob in labels.get(server, {}).get(leg, ()))
            and mapper.can_use_tool(role, server, tool)
        ]
        for leg in LEGS
    }


def _granted(mapper: MCPToolMapper) -> set[Granted]:
    return {
        Granted(role.name, grant.server, grant.tool, described(grant.when))
        for role in mapper.roles.values()
        for grant in role.grants
    }


def _turned(counted: Counter[tuple[str, ToolId, str]]) -> list[Turned]:
    return [
        Turned(role, tool.server, tool.tool, calls, reason) for (role, tool, reason), calls in counted.most_common()
    ]


def _any_matches(names: Iterable[str], glob: str) -> bool:
    return any(fnmatchcase(name, glob) for name in names)
