"""What all toolkits share: the tools of a role, one guarded call, and what a model is told of its outcome."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.content import ImageContent, TextContent
from squidbot.core.domain.errors import InvalidArguments, SquidbotError
from squidbot.core.domain.providers import Provider, UnfitSchema, fit_schema
from squidbot.core.domain.schemas import safe_schema
from squidbot.core.domain.text import visible
from squidbot.core.domain.tools import ToolDefinition, ToolResult
from squidbot.core.services.door import AgentMCPService

ANY: Sequence[str] = ("*",)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoleTool:
    """One tool that a caller may use: what a model is told of it, and the guarded way to call it."""

    door: AgentMCPService
    caller: Caller
    definition: ToolDefinition
    parameters: dict[str, Any]
    """The JSON Schema, in a copy of its own: some frameworks write into it."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def description(self) -> str:
        """The server's words, with nothing hidden in them; some frameworks refuse a tool without any."""
        return visible(self.definition.description) or self.definition.title or self.name

    async def call(self, given: object) -> ToolResult:
        """Call the tool with arguments, or with the JSON of them. A refusal is a result too; raises only cancellation."""
        which = self.definition.id
        try:
            return await self.door.execute_tool(self.caller, *which, await self._arguments(given))
        except SquidbotError as refused:
            return ToolResult((TextContent(str(refused)),), is_error=True, record=refused.record)

    async def _arguments(self, given: object) -> Mapping[str, Any]:
        """What a model wrote, as arguments. Raises InvalidArguments, recorded like any other refusal, and NotRecorded."""
        try:
            value = json.loads(given or "{}") if isinstance(given, str) else given
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, Mapping):
            return value
        error = InvalidArguments(f"the arguments of {self.name!r} must be one JSON object; nothing was called")
        revision = self.door.permissions.revision
        attempt = self.door.recorder.attempt(self.caller, self.definition.id, {"malformed": given}, revision=revision)
        await self.door.recorder.refused(attempt, error)
        raise error


@dataclass(frozen=True, slots=True)
class RoleTools:
    """Which tools an agent is given: those of a role, or fewer. A role given as text is one of this program."""

    door: AgentMCPService
    role: Caller | str
    servers: Sequence[str] = ANY
    tools: Sequence[str] = ANY
    provider: Provider | None = None
    """Whose rules the schemas are made to fit; without one they stay as the servers gave them."""

    async def connected(self) -> list[RoleTool]:
        """All of them, once their servers are connected; what cannot start has none."""
        await self.door.initialize_agent_tools(self.role)
        return list(self.now())

    def now(self) -> Iterator[RoleTool]:
        """Those that the role may use at this moment; a tool that the provider would refuse is left out alone."""
        caller = self.role if isinstance(self.role, Caller) else Caller(self.role)
        for tool in self.door.tools(caller):
            if _matches(tool.server, self.servers) and _matches(tool.tool, self.tools):
                try:
                    yield RoleTool(self.door, caller, tool, self._schema(tool))
                except UnfitSchema as unfit:
                    _log.warning("%s is left out: %s", tool.name, unfit)

    def _schema(self, tool: ToolDefinition) -> dict[str, Any]:
        schema = deepcopy(dict(tool.parameters))
        return fit_schema(schema, self.provider) if self.provider else safe_schema(schema)


def said(result: ToolResult) -> str:
    """The result as a model reads it: its text, else its structure, with nothing hidden; a picture is named."""
    if result.content or result.structured is None:
        return visible(result.text)
    return visible(json.dumps(result.structured, ensure_ascii=False, default=str))


def pictures(result: ToolResult) -> list[ImageContent]:
    """The pictures of a result, for frameworks that show them to their model."""
    return [block for block in result.content if isinstance(block, ImageContent)]


def beside(result: ToolResult) -> dict[str, Any]:
    """What the program of the agent may want, and no model reads: the structure, and the id of the call's record."""
    return {"structured_content": result.structured, "record": result.record}


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
