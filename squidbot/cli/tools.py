"""`squidbot tools`: what the tools of all servers are, and calling one."""

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from squidbot.cli.arguments import GivenArguments, read_arguments, typed_arguments
from squidbot.cli.errors import CommandError
from squidbot.cli.exits import DONE, FAILED
from squidbot.cli.grammar import Group, ServerName, role_option
from squidbot.cli.invocation import Invocation, unavailable
from squidbot.cli.lookup import find_one
from squidbot.cli.person import TerminalPerson, at_terminal, run_with_person
from squidbot.cli.results import Answers
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import MCPConnectionError, UnknownTool
from squidbot.core.domain.naming import may_have
from squidbot.core.domain.schemas import flat_parameters
from squidbot.core.domain.shapes import result_json, tokens_of, tool_json
from squidbot.core.domain.tools import Parameter, ToolDefinition, ToolId, ToolResult

if TYPE_CHECKING:
    from squidbot.container import AgentMCPService


@click.group(cls=Group, example="squidbot tools list")
def tools() -> None:
    """List, show and call the tools of all servers."""


@tools.command("list", example="squidbot tools list --server filesystem")
@click.option("--server", type=ServerName(), metavar="NAME", help="Only the tools of this server.")
@role_option
@click.pass_obj
def list_tools(call: Invocation, server: str | None, role: str | None) -> None:
    """List the tools. Only servers that were never listed before are started."""
    servers = None if server is None else [call.known_server(server)]

    async def ask() -> list[ToolDefinition]:
        async with call.door(servers, only_looks=call.caller(role).is_operator) as door:
            return door.tools(await call.known_role(door, role), server)

    found = call.run(ask)
    if call.json:
        call.output.document([tool_json(tool) for tool in found])
    elif found:
        call.output.table(("name", "description"), [(tool.name, _first_sentence(tool.description)) for tool in found])
        call.output.note(f"{_count(found)}, about {tokens_of(found):,} tokens for a model")
    else:
        call.output.note("No tools. 'squidbot servers list' shows the servers, 'squidbot doctor' what is wrong.")


@tools.command("show", example="squidbot tools show mcp_filesystem_read_file")
@click.argument("name")
@click.pass_obj
def show_tool(call: Invocation, name: str) -> None:
    """Show what a tool does and which arguments it takes."""

    async def ask() -> ToolDefinition:
        async with call.door(meant=name, only_looks=True) as door:
            return find_tool(door, name)

    tool = call.run(ask)
    if call.json:
        more = {"title": tool.title, "output_schema": tool.output_schema, "annotations": dict(tool.annotations)}
        call.output.document({**tool_json(tool), **more})
        return
    call.output.heading(tool.name, beside=f"{tool.tool!r} of server {tool.server!r}")
    if tool.description:
        call.output.write(call.output.clean(f"\n{tool.description.strip()}\n\n"))
    parameters = flat_parameters(tool.parameters)
    if parameters:
        rows = [(item.name, item.type, _necessity(item), _about(item)) for item in parameters]
        call.output.table(("argument", "type", "needed", "description"), rows)
    else:
        call.output.note("It takes no arguments.")


@tools.command("call", example='squidbot tools call mcp_filesystem_write_file path=notes.txt content="Hello"')
@click.argument("name")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "whole", metavar="JSON", help="All arguments at once: a JSON object, or @FILE.")
@role_option
@click.pass_obj
def call_tool(call: Invocation, name: str, arguments: tuple[str, ...], whole: str | None, role: str | None) -> int:
    """Call a tool. Values are JSON, strings need no quotes, KEY=@FILE reads a file.

    NAME is the one that agents see (mcp_SERVER_TOOL), SERVER/TOOL, or the tool's own if no other has it.
    """
    given = read_arguments(arguments, whole)
    person = TerminalPerson(call.output)
    counterpart = at_terminal(call, person)

    async def ask() -> tuple[ToolDefinition, ToolResult, float]:
        async with call.door(meant=name) as door:
            caller = await _acting(call, door, role, name, given)
            tool = await _wanted(door, caller, name, given)
            began = time.perf_counter()
            fitting = typed_arguments(given, tool.parameters)
            with call.output.progress(tool.name) as on_progress:
                result = await door.execute_tool(
                    caller, tool.server, tool.tool, fitting, on_progress=on_progress, counterpart=counterpart
                )
            await counterpart.aclose()
            return tool, result, (time.perf_counter() - began) * 1000

    tool, result, duration_ms = run_with_person(person, ask) if person.is_there else call.run(ask)
    if result.failure is not None and result.failure.kind == "unavailable":
        raise MCPConnectionError(result.text, server=tool.server)
    if result.failure is not None and result.failure.kind == "unknown_tool":
        raise UnknownTool(result.text)
    if call.json:
        call.output.document(result_json(tool, result, duration_ms=duration_ms))
    else:
        answers = Answers(call.output, folder=call.container.state() / "results", name=tool.name)
        answers.show_result(result)
        if result.is_error:
            call.output.note(f"{tool.name} failed.")
    return FAILED if result.is_error else DONE


def find_tool(door: "AgentMCPService", name: str) -> ToolDefinition:
    """The tool that is meant by `name`. Raises CommandError, or MCPConnectionError if its server is not there."""
    try:
        return find_one(name, door.all_tools(), names=lambda tool: [tool.name, str(tool.id), tool.tool], kind="tool")
    except CommandError:
        for server in door.source.server_names():
            status = door.source.status(server)
            if status.state == "failed" and may_have(status.name, name):
                raise unavailable(status) from None
        raise


async def _acting(
    call: Invocation, door: "AgentMCPService", role: str | None, name: str, given: GivenArguments
) -> Caller:
    """Who calls; that somebody tried to in a role that there is not is recorded."""
    try:
        return await call.known_role(door, role)
    except CommandError as error:
        await door.refuse(call.caller(role), ToolId("", name), {**given.values, **given.texts}, error)
        raise


async def _wanted(door: "AgentMCPService", caller: Caller, name: str, given: GivenArguments) -> ToolDefinition:
    """The tool that is meant; that somebody asked for one that is not there is recorded too."""
    try:
        return find_tool(door, name)
    except CommandError as error:
        await door.refuse_unknown(caller, name, {**given.values, **given.texts}, UnknownTool(str(error)))
        raise


def _first_sentence(text: str) -> str:
    """The first line of a description, up to its first full stop: lists are read at a glance."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    sentence, stop, _ = line.partition(". ")
    return sentence + stop.strip()


def _count(found: Sequence[ToolDefinition]) -> str:
    servers = len({tool.server for tool in found})
    return f"{len(found)} tool{'s'[: len(found) != 1]} of {servers} server{'s'[: servers != 1]}"


def _necessity(parameter: Parameter) -> str:
    if parameter.required:
        return "yes"
    return "no" if parameter.default is None else f"no, else {json.dumps(parameter.default)}"


def _about(parameter: Parameter) -> str:
    choices = "" if parameter.enum is None else f"One of {', '.join(json.dumps(choice) for choice in parameter.enum)}."
    return f"{parameter.description} {choices}".strip()
