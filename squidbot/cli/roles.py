"""`squidbot roles`: who may use what, why, and what a change of it would do."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from squidbot.cli.arguments import read_arguments, typed_arguments
from squidbot.cli.errors import CommandError
from squidbot.cli.exits import DONE, FAILED
from squidbot.cli.grammar import Group, RoleName, ServerName
from squidbot.cli.invocation import Invocation
from squidbot.cli.lookup import find_one, nearest
from squidbot.core.domain.audit import RecordFilter, ToolExecution
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.conditions import described
from squidbot.core.domain.role_review import (
    LEGS,
    Dangling,
    Granted,
    Replayed,
    Turned,
    dangling,
    difference,
    legs_of,
    simulate,
    ungranted,
)
from squidbot.core.domain.roles import Decision, MCPToolMapper
from squidbot.core.domain.shapes import role_json, tokens_of
from squidbot.core.domain.tools import ToolDefinition, ToolId, with_fixed

if TYPE_CHECKING:
    from squidbot.container import AgentMCPService


@click.group(cls=Group, example="squidbot roles explain designer mcp_github_merge_pull_request")
def roles() -> None:
    """Who may use what, why, and what a change would do."""


@roles.command("list", example="squidbot roles list")
@click.pass_obj
def list_roles(call: Invocation) -> None:
    """List the roles and the servers of each. Starts nothing."""

    async def ask() -> MCPToolMapper:
        async with call.door(start=False) as door:
            await door.permissions.refresh(now=True)
            return door.permissions.mapper

    mapper = call.run(ask)
    if call.json:
        call.output.document([role_json(mapper, name) for name in mapper.roles])
        return
    rows = [
        (name, role.description, ", ".join(mapper.get_servers_for_role(name))) for name, role in mapper.roles.items()
    ]
    call.output.table(("role", "for", "servers"), rows)
    call.output.note(f"{len(rows)} roles, revision {mapper.revision}. 'squidbot roles show ROLE' lists its tools.")


@roles.command("show", example="squidbot roles show tech_lead")
@click.argument("role", type=RoleName())
@click.pass_obj
def show_role(call: Invocation, role: str) -> None:
    """Show what a role is granted, and which tools that is with the servers there are."""

    async def ask() -> tuple[MCPToolMapper, list[ToolDefinition]]:
        async with call.door() as door:
            caller = await call.known_role(door, role)
            return door.permissions.mapper, door.tools(caller)

    mapper, tools = call.run(ask)
    if call.json:
        known = [{"name": tool.name, "server": tool.server, "tool": tool.tool} for tool in tools]
        call.output.document({**role_json(mapper, role), "callable": known, "tokens": tokens_of(tools)})
        return
    call.output.heading(role, beside=mapper.roles[role].description if role in mapper.roles else "")
    here = {tool.id for tool in tools}
    rows = []
    for server, granted in mapper.get_all_tools_for_role(role).items():
        for tool in granted:
            grant = next((g for g in mapper.roles[role].grants if (g.server, g.tool) == (server, tool)), None)
            rows.append((server, tool, described(grant.when) if grant else "", _answered(here, server, tool)))
    call.output.table(("server", "tool", "when", "here"), rows)
    count = f"{len(tools)} tool{'s'[: len(tools) != 1]}"
    call.output.note(f"{count} can be called now, about {tokens_of(tools):,} tokens for a model")


@roles.command("check", example="squidbot roles check")
@click.pass_obj
def check_roles(call: Invocation) -> int:
    """Find grants that no tool answers to, and tools that nobody may use; exits with 1 if a grant dangles."""

    async def ask() -> tuple[MCPToolMapper, dict[str, list[str]]]:
        async with call.door() as door:
            await door.permissions.refresh(now=True)
            return door.permissions.mapper, _tools_by_server(door)

    mapper, tools = call.run(ask)
    hanging = dangling(mapper, tools, known=list(call.container.mcp_config().servers))
    unused = ungranted(mapper, tools)
    if call.json:
        call.output.document(
            {
                "dangling": [asdict(grant) for grant in hanging],
                "ungranted": [{"server": tool.server, "tool": tool.tool} for tool in unused],
            }
        )
    else:
        for grant in hanging:
            near = f"Did you mean {grant.nearest!r}?" if grant.nearest else None
            where = f"role {grant.role!r} is granted {grant.tool!r} of server {grant.server!r}"
            call.output.labelled("warning", f"{where}, which is not there", hint=near)
        if unused:
            call.output.note(f"No role may use: {', '.join(str(tool) for tool in unused)}")
        if not hanging:
            call.output.labelled("ok", "every grant has its tool.")
    return FAILED if hanging else DONE


@roles.command("explain", example="squidbot roles explain backend_developer git_push branch=main")
@click.argument("role", type=RoleName())
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@click.pass_obj
def explain(call: Invocation, role: str, tool: str, arguments: tuple[str, ...]) -> None:
    """Say whether a role may use a tool, by which rule, and why; with arguments, whether with these."""
    given = read_arguments(arguments, None)

    async def ask() -> tuple[Decision, list[Dangling]]:
        async with call.door(start=False) as door:
            caller = await call.known_role(door, role)
            found = _find(door, tool)
            values = typed_arguments(given, found.parameters)
            servers = list(call.container.mcp_config().servers)
            hanging = dangling(door.permissions.mapper, _tools_by_server(door), known=servers)
            # Without arguments the question is whether with any at all.
            decided = door.permissions.decide(caller, found.id, with_fixed(values, found.fixed) if arguments else None)
            return decided, [each for each in hanging if (each.role, each.server, each.tool) == (role, *found.id)]

    decision, hanging = call.run(ask)
    if call.json:
        call.output.document(asdict(decision))
        return
    call.output.labelled("allowed" if decision.allowed else "refused", f"{role}: {decision.server}/{decision.tool}")
    call.output.write(call.output.clean(f"  rule    {decision.rule or 'none: what is not granted is refused'}"))
    call.output.write(call.output.clean(f"  reason  {decision.reason}"))
    for each in hanging[:1]:  # the settings and the database may both have it
        near = f" Did you mean {each.nearest!r}?" if each.nearest else ""
        call.output.note(f"But {each.tool!r} of server {each.server!r} is not there.{near}")


@roles.command("diff", example="squidbot roles diff proposed.json")
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def diff_roles(call: Invocation, file: Path) -> None:
    """Show which grants another settings or role-mapping file adds and takes away."""
    added, removed = difference(call.container.mapper(), call.container.mapping_of(file))
    if call.json:
        call.output.document({"added": [g._asdict() for g in added], "removed": [g._asdict() for g in removed]})
        return
    for sign, grants in (("+", added), ("-", removed)):
        for grant in grants:
            call.output.write(call.output.clean(f"{sign} {_grant_line(grant)}"))
    call.output.note(f"{len(added)} added, {len(removed)} removed.")


@roles.command("simulate", example="squidbot roles simulate proposed.json")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--since", metavar="WHEN", help="Only calls since then: a date, or 7d, 12h.")
@click.pass_obj
def simulate_roles(call: Invocation, file: Path, since: str | None) -> None:
    """Replay the recorded calls against another file's grants: what would be refused, what newly allowed."""
    from squidbot.cli.moments import moment

    after = call.container.mapping_of(file)
    wanted = RecordFilter(kind="call", since=moment(since) if since else None)

    async def ask() -> list[Replayed]:
        async with call.store() as store:
            changes = (await store.load()).changes
            nonlocal after
            after = after.with_changes(changes)
            return [call_ async for record in store.records(wanted) if (call_ := _replayed(record)) is not None]

    calls = call.run(ask)
    refused, allowed = simulate(calls, after)
    if call.json:
        document = {"refused": [asdict(t) for t in refused], "allowed": [asdict(t) for t in allowed]}
        call.output.document({"calls": len(calls), **document})
        return
    _show_turned(call, "would be refused", refused)
    _show_turned(call, "would be allowed", allowed)
    turned = sum(turn.calls for turn in [*refused, *allowed])
    call.output.note(f"{len(calls)} recorded calls of roles, {turned} of them would be decided otherwise.")


@roles.command("flows", example="squidbot roles flows")
@click.pass_obj
def flows(call: Invocation) -> None:
    """List the roles that can read what strangers wrote, read what is private, and write where others read."""

    async def ask() -> tuple[MCPToolMapper, dict[str, list[str]]]:
        async with call.door() as door:
            await door.permissions.refresh(now=True)
            return door.permissions.mapper, _tools_by_server(door)

    mapper, tools = call.run(ask)
    labels = call.container.flow_labels()
    found = {role: legs_of(mapper, role, tools, labels) for role in mapper.roles}
    complete = {role: legs for role, legs in found.items() if all(legs.values())}
    if call.json:
        call.output.document(
            [
                {"role": role, **{leg: [str(tool) for tool in tools_] for leg, tools_ in legs.items()}}
                for role, legs in complete.items()
            ]
        )
    elif complete:
        rows = [
            (role, *(", ".join(tool.tool for tool in legs[leg]) for leg in LEGS)) for role, legs in complete.items()
        ]
        call.output.table(("role", "untrusted in", "private in", "out"), rows)
        call.output.note("What a stranger wrote can make an agent of these roles carry private data out.")
    else:
        call.output.labelled("ok", "no role has all three: untrusted in, private in, and a way out.")


@roles.command("grant", example="squidbot roles grant designer github get_pull_request")
@click.argument("role", type=RoleName())
@click.argument("server", type=ServerName())
@click.argument("tool")
@click.pass_obj
def grant(call: Invocation, role: str, server: str, tool: str) -> None:
    """Grant a tool (or a glob) to a role, above the settings; felt at once by running gateways."""
    _change(call, role, server, tool, enabled=True)


@roles.command("revoke", example="squidbot roles revoke devops_engineer git git_push")
@click.argument("role", type=RoleName())
@click.argument("server", type=ServerName())
@click.argument("tool")
@click.pass_obj
def revoke(call: Invocation, role: str, server: str, tool: str) -> None:
    """Withdraw a tool (or a glob) from a role, above the settings; felt at once by running gateways."""
    _change(call, role, server, tool, enabled=False)


def _change(call: Invocation, role: str, server: str, tool: str, *, enabled: bool) -> None:
    call.known_server(server)
    if not tool:
        raise CommandError("a grant names a tool, or a glob such as '*'", code="usage")

    async def ask() -> tuple[str, str, list[str]]:
        async with call.door(start=False) as door:
            await call.check_role(role)
            record = await door.change_grant(call.caller(None), role=role, server=server, tool=tool, enabled=enabled)
            return record, door.permissions.revision, _tools_by_server(door).get(server, [])

    record, revision, known = call.run(ask)
    if call.json:
        answer = {"role": role, "server": server, "tool": tool, "enabled": enabled}
        call.output.document({**answer, "revision": revision, "record": record})
        return
    call.output.write(
        call.output.clean(f"{role} {'may now' if enabled else 'may no longer'} use {tool!r} of {server!r}.")
    )
    if enabled and known and tool not in known and not set(tool) & set("*?["):
        near = nearest(tool, known)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        call.output.note(f"Server {server!r} has no tool {tool!r} now.{meant}")


def _find(door: "AgentMCPService", name: str) -> ToolDefinition:
    """The tool that is meant: one that is known, else one that a grant names."""
    known = door.all_tools()
    granted = {ToolId(g.server, g.tool) for role in door.permissions.mapper.roles.values() for g in role.grants}
    there = {tool.id for tool in known}
    known += [ToolDefinition(tool.server, tool.tool, f"mcp_{tool.server}_{tool.tool}") for tool in granted - there]
    return find_one(name, known, names=lambda tool: [tool.name, str(tool.id), tool.tool], kind="tool")


def _tools_by_server(door: "AgentMCPService") -> dict[str, list[str]]:
    tools: dict[str, list[str]] = {}
    for tool in door.all_tools():
        tools.setdefault(tool.server, []).append(tool.tool)
    return tools


def _answered(here: set[ToolId], server: str, tool: str) -> str:
    from fnmatch import fnmatchcase

    count = sum(1 for known in here if known.server == server and fnmatchcase(known.tool, tool))
    return "yes" if count == 1 else f"{count} tools" if count else "no"


def _replayed(record: ToolExecution) -> Replayed | None:
    """A record as a question: only calls that a role made, and that were decided by its grants."""
    if record.role == Caller("operator").role or not record.server:
        return None
    by_grant = record.outcome != "refused" or (record.error_message or "").startswith("role ")
    if not by_grant:
        return None
    arguments = json.loads(record.arguments)
    whole = isinstance(arguments, dict) and not arguments.get("cut")
    return Replayed(record.role, record.tool_id, arguments if whole else None, record.outcome == "refused")


def _grant_line(grant: Granted) -> str:
    return f"{grant.role}: {grant.server}/{grant.tool}" + (f" when {grant.when}" if grant.when else "")


def _show_turned(call: Invocation, title: str, turned: Sequence[Turned]) -> None:
    if turned:
        call.output.heading(f"{title}:")
        rows = [(turn.role, f"{turn.server}/{turn.tool}", str(turn.calls), turn.reason) for turn in turned]
        call.output.table(("role", "tool", "calls", "reason"), rows)
