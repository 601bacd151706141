"""An agent of one's own: `agent.yaml` says who it is, what it is told, which model and which servers it has."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from squidbot.config import documents
from squidbot.config.files import display, read_secret, read_text, under
from squidbot.config.imports import import_document
from squidbot.config.report import problems_of
from squidbot.config.schema import Settings, ToolsSettings
from squidbot.config.secrets import worth_hiding
from squidbot.config.sections import AgentSettings, ModelSettings
from squidbot.config.server import MCPServerConfig, ServerOrigin
from squidbot.config.strict import Glob, Positive, Seconds, Strict
from squidbot.config.variables import Filler
from squidbot.core.domain.errors import ConfigError, Problem

_NAMING = frozenset({"type", "server", "name", "description"})
_ELSEWHERE = "Say it there, or give this one a name of its own with its command or url"


class InstructionsFile(Strict):
    """A file with the instructions."""

    file: Glob


class AgentFile(Strict):
    """What an agent's file may say."""

    name: Glob = "squidbot"
    description: str = ""
    instructions: str | InstructionsFile = ""
    model: str | ModelSettings | None = None
    role: Glob | None = None
    max_steps: Positive | None = None
    max_seconds: Seconds | None = None
    max_tokens: Positive | None = None
    tools: Annotated[list[dict[str, Any]], Field(default_factory=list)]

    @model_validator(mode="before")
    @classmethod
    def _without_version(cls, data: Any) -> Any:
        return {key: value for key, value in data.items() if key != "version"} if isinstance(data, dict) else data


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """An agent, ready to work: who it is, what it is told, and the settings that it works with."""

    name: str
    description: str
    instructions: str
    settings: Settings
    model: str | None = None
    """A model of another name, as on the command line; one with all its fields is in the settings."""
    servers: tuple[str, ...] | None = None
    """Only the tools of these; None for all."""
    notes: tuple[str, ...] = ()
    secrets: frozenset[str] = frozenset()
    """What variables and files put into it, to be blanked wherever text is shown."""


def load_agent(path: Path, settings: Settings) -> AgentDefinition:
    """The agent of a file, over `settings`. Raises ConfigError with everything that is wrong."""
    if not path.exists():
        raise ConfigError(f"There is no agent file {display(path)}.", hint="docs/agent.md shows one.")
    document = documents.read(path)
    try:
        agent = AgentFile.model_validate(document.value)
    except ValidationError as error:
        problems = problems_of(error, AgentFile, lines=document.lines)
        tools = document.value.get("tools")
        if isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools):
            try:
                _servers(tools, path, settings)
            except ConfigError as more:
                problems += more.problems
        raise ConfigError(f"{display(path)} cannot be used:", problems) from None
    servers, notes = _servers(agent.tools, path, settings)
    bounds = agent.model_dump(include={"role", "max_steps", "max_seconds", "max_tokens"}, exclude_none=True)
    update: dict[str, Any] = {
        "agent": AgentSettings(**{**settings.agent.model_dump(exclude_unset=True), **bounds}),
        "tools": settings.tools.model_copy(update={"mcp_servers": servers}),
    }
    taken: set[str] = set()
    if isinstance(agent.model, ModelSettings):
        update["model"] = _filled(agent.model, path, taken)
    combined = settings.model_copy(update=update)
    return AgentDefinition(
        name=agent.name,
        description=agent.description,
        instructions=_instructions(agent, path),
        settings=combined,
        model=agent.model if isinstance(agent.model, str) else None,
        servers=None if not agent.tools else tuple(servers),
        notes=tuple(notes),
        secrets=combined.secrets | worth_hiding(taken),
    )


def _servers(
    tools: list[dict[str, Any]], path: Path, settings: Settings
) -> tuple[dict[str, MCPServerConfig], list[str]]:
    """The servers that the agent has: those of the settings that it names, and those that it defines itself."""
    known = settings.tools.mcp_servers
    if not tools:
        return dict(known), []
    named: dict[str, MCPServerConfig] = {}
    own = []
    problems: list[Problem] = []
    for index, tool in enumerate(tools):
        server = tool.get("server", tool.get("name"))
        if tool.get("type") == "mcp" and server in known and not tool.keys() & {"command", "url"}:
            named[str(server)] = known[str(server)]
            # What would be overheard here may be a bound, such as `deny`, that somebody relies on.
            problems += [
                Problem(
                    f"tools[{index}].{key}", f"has no effect: {server!r} is a server of the settings", hint=_ELSEWHERE
                )
                for key in sorted(tool.keys() - _NAMING)
            ]
        else:
            own.append(tool)
    if problems:
        raise ConfigError(f"{display(path)} cannot be used:", problems)
    imported = import_document({"tools": own}, kind="agent")
    context = {"server": ServerOrigin(folder=path.parent.absolute())}
    try:
        defined = ToolsSettings.model_validate({"mcp_servers": imported.servers}, context=context).mcp_servers
    except ValidationError as error:
        problems = [
            replace(problem, path=problem.path.replace("mcp_servers", "tools", 1))
            for problem in problems_of(error, ToolsSettings)
        ]
        raise ConfigError(f"{display(path)} cannot be used:", problems) from None
    resolved: dict[str, MCPServerConfig] = {}
    for name, entry in defined.items():
        resolved[name], more = entry.resolve(at=f"tools.{name}")
        problems += more
    if problems:
        raise ConfigError(f"{display(path)} cannot be used:", problems)
    return {**named, **resolved}, imported.notes


def _filled(model: ModelSettings, path: Path, taken: set[str]) -> ModelSettings:
    """The model with its references filled."""
    filler = Filler(os.environ, lambda file: read_secret(under(path.parent.absolute(), file)))
    written = filler.tree(model.model_dump(exclude_unset=True), "model")
    problems = list(filler.problems)
    taken |= filler.taken
    if not problems:
        try:
            return ModelSettings.model_validate(written)
        except ValidationError as error:
            problems = problems_of(error, ModelSettings, at="model", show_values=False)
    raise ConfigError(f"{display(path)} cannot be used:", problems)


def _instructions(agent: AgentFile, path: Path) -> str:
    if isinstance(agent.instructions, str):
        return agent.instructions
    file = under(path.parent.absolute(), agent.instructions.file)
    try:
        return read_text(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        problem = Problem("instructions.file", f"the file {agent.instructions.file!r} cannot be read: {reason}")
        raise ConfigError(f"{display(path)} cannot be used:", [problem]) from None
