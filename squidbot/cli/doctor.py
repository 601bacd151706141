"""`squidbot doctor`: looks at everything that a run depends on, and says what to do about what is wrong."""

import importlib.metadata
import platform
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from squidbot._version import __version__
from squidbot.cli.exits import DONE, FAILED
from squidbot.cli.grammar import Command
from squidbot.cli.invocation import Invocation
from squidbot.core.domain.errors import ConfigError, NotRecorded
from squidbot.core.domain.role_review import dangling
from squidbot.core.domain.roles import MCPToolMapper
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.shapes import status_json, tokens_of
from squidbot.core.domain.tools import ToolDefinition

if TYPE_CHECKING:
    from squidbot.config.schema import Settings

MANY_TOKENS = 25_000
"""Beyond this a list of tools crowds out what an agent is to think about."""
_HELD_BACK = "it was not started: what its command would fetch and run is in doubt"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or will be."""

    severity: Literal["error", "warning"]
    where: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """A server that was tried, and what its tools cost a model."""

    status: ServerStatus
    tools: Sequence[ToolDefinition]
    held_back: bool = False
    """It was not tried: what it runs is in doubt."""

    @property
    def tokens(self) -> int:
        return tokens_of(self.tools)


@click.command(cls=Command, example="squidbot doctor --json")
@click.option("start_all", "--all", is_flag=True, help="Start also servers of which it is in doubt what they run.")
@click.pass_obj
def doctor(call: Invocation, start_all: bool) -> int:
    """Start every server that can be trusted to be what it says, and look for whatever is wrong.

    Exits with 1 if there is something.
    """
    from squidbot.config.advice import doubtful
    from squidbot.config.load import find_settings

    call.says_what_is_wrong()
    findings = list(_state_findings(call.container.state()))
    examined: list[Examined] = []
    roles: dict[str, int] = {}
    source = call.config
    try:
        source = find_settings(call.config)
        findings += _advice_findings(call.settings)
        held_back = frozenset() if start_all else doubtful(call.settings)
        examined = call.run(lambda: _examine(call, held_back))
        findings += _server_findings(examined)
        mapper = call.container.mapper()
        try:
            mapper = call.run(lambda: _grants_in_force(call))
        except NotRecorded as error:
            findings.append(Finding("error", "audit", str(error), error.hint))
        findings += _grant_findings(mapper, examined, known=list(call.container.mcp_config().servers))
        roles = _role_costs(mapper, examined)
    except ConfigError as error:
        findings += _settings_findings(error)
    if call.json:
        call.output.document({**_document(call, findings, examined), "roles": roles})
    else:
        _report(call, findings, examined, roles, source=source)
    return FAILED if findings else DONE


async def _examine(call: Invocation, held_back: Collection[str]) -> list[Examined]:
    """Start the servers side by side, but for those that are held back, and see what came of each."""
    async with call.container.client() as client:
        with call.output.waiting("Starting all servers…"):
            await client.connect_all([name for name in client.server_names() if name not in held_back])
        return [
            Examined(replace(status, error=_HELD_BACK), (), held_back=True)
            if status.name in held_back
            else Examined(status, client.get_available_tools(status.name))
            for status in client.statuses()
        ]


async def _grants_in_force(call: Invocation) -> MCPToolMapper:
    """The roles with what the database says of them. Raises NotRecorded if nothing could be recorded in it either."""
    async with call.store():
        permissions = call.container.service().permissions
        await permissions.refresh(now=True)
        return permissions.mapper


def _state_findings(folder: Path) -> Iterator[Finding]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = "Make it writable, or name another folder with SQUIDBOT_HOME."
        yield Finding("error", str(folder), f"the state folder cannot be written to: {reason}", hint)


def _settings_findings(error: ConfigError) -> Iterator[Finding]:
    if not error.problems:
        yield Finding("error", "settings", str(error), error.hint)
    for problem in error.problems:
        yield Finding("error", problem.path or "settings", problem.message, problem.hint)


def _advice_findings(settings: "Settings") -> Iterator[Finding]:
    from squidbot.config.advice import advice

    for problem in advice(settings):
        yield Finding("warning", problem.path, problem.message, problem.hint)


def _server_findings(examined: Sequence[Examined]) -> Iterator[Finding]:
    enabled = [server for server in examined if server.status.state != "disabled"]
    if not enabled:
        yield Finding("warning", "settings", "there is no server to connect to", "Add one: squidbot servers add.")
    for server in enabled:
        status = server.status
        if status.state != "ready" and not server.held_back:
            yield Finding("error", status.name, status.error or f"it is {status.state}", status.hint)
    total = sum(server.tokens for server in enabled)
    if total > MANY_TOKENS:
        largest = max(enabled, key=lambda server: server.tokens)
        yield Finding(
            "warning",
            largest.status.name,
            f"all tools together cost a model about {total:,} tokens, {largest.tokens:,} of them this server's",
            "Leave out what nobody needs with 'allow' or 'deny' in its entry.",
        )


def _grant_findings(mapper: MCPToolMapper, examined: Sequence[Examined], *, known: Sequence[str]) -> Iterator[Finding]:
    """Grants that nothing answers to; only servers that came up can tell."""
    ready = {server.status.name: [tool.tool for tool in server.tools] for server in examined if _is_ready(server)}
    for grant in dangling(mapper, ready, known=known):
        hint = f"Did you mean {grant.nearest!r}?" if grant.nearest else None
        message = f"it is granted {grant.tool!r} of server {grant.server!r}, which is not there"
        yield Finding("warning", f"roles.{grant.role}", message, hint)


def _role_costs(mapper: MCPToolMapper, examined: Sequence[Examined]) -> dict[str, int]:
    """What each role's list of tools costs a model; roles without any tool here are left out."""
    tools = [tool for server in examined for tool in server.tools]
    listed = {role: [tool for tool in tools if mapper.can_use_tool(role, *tool.id)] for role in mapper.roles}
    return {role: tokens_of(found) for role, found in listed.items() if found}


def _is_ready(server: Examined) -> bool:
    return server.status.state == "ready"


def _document(call: Invocation, findings: Sequence[Finding], examined: Sequence[Examined]) -> dict[str, Any]:
    clean = call.output.clean
    return {
        "ok": not findings,
        "findings": [
            {
                **asdict(finding),
                "message": clean(finding.message),
                "hint": clean(finding.hint) if finding.hint else None,
            }
            for finding in findings
        ],
        "servers": [{**status_json(server.status, clean), "tokens": server.tokens} for server in examined],
        "versions": _versions(),
    }


def _report(
    call: Invocation,
    findings: Sequence[Finding],
    examined: Sequence[Examined],
    roles: Mapping[str, int],
    *,
    source: Path | None,
) -> None:
    versions = _versions()
    call.output.heading(
        f"squidbot {versions['squidbot']}", beside=f"Python {versions['python']}, mcp {versions['mcp']}"
    )
    call.output.write(call.output.clean(f"settings  {source or 'the embedded default'}"))
    call.output.write(call.output.clean(f"state     {call.container.state()}\n\n"))
    if examined:
        headers = ("server", "transport", "state", "tools", "tokens", "protocol")
        call.output.table(headers, [_row(server) for server in examined])
        call.output.write("")
    if roles:
        call.output.table(("role", "tokens of its tools"), [(role, f"{tokens:,}") for role, tokens in roles.items()])
        call.output.write("")
    for finding in findings:
        call.output.labelled(finding.severity, f"{finding.where}: {finding.message}", hint=finding.hint)
    if held_back := [server.status.name for server in examined if server.held_back]:
        names = ", ".join(map(repr, held_back))
        call.output.note(f"Not started, for what they would run: {names}. 'squidbot doctor --all' starts them too.")
    if not findings:
        call.output.labelled("ok", "nothing is wrong.")


def _row(server: Examined) -> tuple[str, ...]:
    status = server.status
    counted = status.tools is not None
    tokens = f"{server.tokens:,}" if counted else ""
    return (
        status.name,
        status.transport,
        status.state,
        str(status.tools) if counted else "",
        tokens,
        status.protocol or "",
    )


def _versions() -> dict[str, str]:
    return {"squidbot": __version__, "python": platform.python_version(), "mcp": importlib.metadata.version("mcp")}
