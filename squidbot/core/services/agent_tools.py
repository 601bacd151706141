"""The tools of one agent: what its model is offered, and how a call that it asks for is made, through the guarded door."""

import json
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import anyio

from squidbot.core.domain.audit import Outcome, outcome_of
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.content import AudioContent, Content, ImageContent, TextContent, text_of
from squidbot.core.domain.conversation import CallAsked, Message, ModelTool, ToolMessage
from squidbot.core.domain.errors import (
    InvalidArguments,
    NotRecorded,
    RateLimited,
    SquidbotError,
    ToolNotPermitted,
    UnknownTool,
)
from squidbot.core.domain.flows import FlowLabels, legs_of_tool, way_out
from squidbot.core.domain.foreign import described, marked, plain_schema
from squidbot.core.domain.naming import nearest
from squidbot.core.domain.role_review import Leg
from squidbot.core.domain.text import head_and_tail
from squidbot.core.domain.tools import ToolDefinition, ToolId, ToolResult
from squidbot.core.ports import Counterpart, OnProgress, ResultShelf
from squidbot.core.services.agent_builtins import (
    CALL_TOOL,
    READ_RESULT,
    SEARCH_TOOLS,
    inner_call,
    page,
    parsed,
    text_argument,
)
from squidbot.core.services.door import AgentMCPService
from squidbot.core.services.tool_search import ToolSearch

Approve: TypeAlias = Callable[[str], Awaitable[bool]]
"""Asks the person whether something may be done that is blocked otherwise."""
FlowRule: TypeAlias = Literal["ask", "block", "allow"]

_MOST_MEDIA = 8
_LARGEST_MEDIA = 5_000_000
_MOST_FOUND = 8


@dataclass(frozen=True, slots=True)
class Rules:
    """What an agent may be given and may do, beside what its role allows."""

    labels: FlowLabels = field(default_factory=dict)
    flows: FlowRule = "ask"
    most_tools: int = 64
    """With more than so many, the model is given a search instead of all of them."""
    longest_result: int = 20_000
    """Characters of a result; a longer one is cut, and kept whole."""
    servers: Collection[str] | None = None
    """Only the tools of these; None for all."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a call came to: for the model, for the record, for whoever watches."""

    message: ToolMessage
    outcome: Outcome
    record: str | None
    text: str
    tool: ToolId | None = None
    """Which tool was meant, reached or not."""


class Toolbox:
    """The tools of a caller, as a model sees and uses them. It remembers what the conversation has read."""

    def __init__(
        self,
        door: AgentMCPService,
        caller: Caller,
        *,
        rules: Rules,
        shelf: ResultShelf,
        approve: Approve | None = None,
        counterpart: Counterpart | None = None,
    ) -> None:
        self._door = door
        self._caller = caller
        self._rules = rules
        self._shelf = shelf
        self._approve = approve
        self._counterpart = counterpart
        self._taken: set[Leg] = set()
        self._searched: tuple[tuple[ToolDefinition, ...], ToolSearch] | None = None
        self.left_out: list[str] = []
        """Tools that no model is offered, since their schemas hide something."""

    # Offering

    def offered(self) -> list[ModelTool]:
        """What the model may call now: all tools of the role, or with too many of them the means to find one."""
        tools = self._tools()
        if len(tools) > self._rules.most_tools:
            return [SEARCH_TOOLS, CALL_TOOL, READ_RESULT]
        fit = [(tool, self._shown(tool)) for tool in tools]
        self.left_out = [tool.name for tool, shown in fit if shown is None]
        return [*(shown for _, shown in fit if shown is not None), READ_RESULT]

    def took(self, messages: Iterable[Message]) -> None:
        """Remember which kinds of data the conversation has come to hold."""
        for message in messages:
            if isinstance(message, ToolMessage) and message.tool is not None:
                self._taken |= self._legs(message.tool)

    # Calling

    async def make(self, call: CallAsked, *, refusal: str | None = None, on_progress: OnProgress | None = None) -> Made:
        """Make a call that the model asked for, or with `refusal` only record that it was not made.

        Whatever stands against it becomes an answer that the model can correct itself from. Raises NotRecorded.
        """
        try:
            arguments = parsed(call.arguments)
            if refusal is not None:
                raise SquidbotError(refusal)
            if call.name == SEARCH_TOOLS.name:
                return await self._own(call, arguments, self._search(arguments))
            if call.name == READ_RESULT.name:
                return await self._own(call, arguments, page(await self._kept(arguments), arguments))
            if call.name == CALL_TOOL.name:
                inner = inner_call(call, arguments)
                return await self._through_the_door(inner, parsed(inner.arguments), on_progress)
        except SquidbotError as error:
            return await self._refused(call, {"text": call.arguments[:2_000]}, error)
        return await self._through_the_door(call, arguments, on_progress)

    async def _through_the_door(
        self, call: CallAsked, arguments: Mapping[str, Any], on_progress: OnProgress | None
    ) -> Made:
        tool = self._named(call.name)
        if tool is None:
            near = nearest(call.name, (tool.name for tool in self._tools()))
            return await self._refused(call, arguments, UnknownTool(f"there is no tool {call.name!r}", nearest=near))
        blocked = await self._blocked(tool)
        if blocked is not None:
            return await self._refused(call, arguments, ToolNotPermitted(blocked), tool=tool.id)
        try:
            result = await self._door.execute_tool(
                self._caller,
                tool.server,
                tool.tool,
                arguments,
                on_progress=on_progress,
                counterpart=self._counterpart,
            )
        except NotRecorded:
            raise
        except SquidbotError as error:
            return _said_no(call, error, tool=tool.id)
        return await self._told(call, result, tool=tool)

    async def _blocked(self, tool: ToolDefinition) -> str | None:
        """Why data could walk out by this call, unless the person whose data it is has said that it may."""
        if self._rules.flows == "allow":
            return None
        reason = way_out(tool.name, self._legs(tool.id), self._taken)
        if reason is None:
            return None
        if self._rules.flows == "ask" and self._approve is not None and await self._approve(reason):
            return None
        return f"blocked: {reason}. The person can do it themselves, or in a conversation that has not read both"

    async def _refused(
        self, call: CallAsked, arguments: Mapping[str, Any], error: SquidbotError, *, tool: ToolId | None = None
    ) -> Made:
        if tool is None:
            known = self._named(call.name)
            tool = ToolId("", call.name) if known is None else known.id
        await self._door.refuse(self._caller, tool, arguments, error)
        return _said_no(call, error, tool=tool if tool.server else None)

    async def _own(self, call: CallAsked, arguments: Mapping[str, Any], result: ToolResult) -> Made:
        answered = await self._door.answer(self._caller, call.name, arguments, result)
        return Made(
            ToolMessage(call.id, call.name, answered.content, answered.is_error),
            outcome_of(answered),
            answered.record,
            answered.text,
        )

    async def _told(self, call: CallAsked, result: ToolResult, *, tool: ToolDefinition) -> Made:
        """The answer as the model is told: marked as data, cut where it is too long, pictures beside it."""
        media = [block for block in result.content if isinstance(block, ImageContent | AudioContent)]
        fit = [block for block in media if len(block.data) <= _LARGEST_MEDIA][:_MOST_MEDIA]
        text = text_of(block for block in result.content if block not in fit)
        if not result.content and result.structured is not None:
            text = json.dumps(result.structured, ensure_ascii=False, default=str)
        text = text or ("" if fit else "(the tool answered with nothing)")
        note = ""
        if len(text) > self._rules.longest_result:
            note = await self._kept_note(text)
            text = head_and_tail(text, self._rules.longest_result)
        key = secrets.token_hex(8)
        words = marked(text, key=key, source=f"tool {tool.name}") + note
        content: tuple[Content, ...] = (TextContent(words), *fit)
        message = ToolMessage(call.id, call.name, content, result.is_error, tool.id)
        return Made(message, outcome_of(result), result.record, text + note, tool.id)

    async def _kept_note(self, text: str) -> str:
        try:
            name = await anyio.to_thread.run_sync(self._shelf.keep, text)
        except OSError:
            return f"\n[The result has {len(text):,} characters and was cut; the whole could not be kept.]"
        return f"\n[The result has {len(text):,} characters and was cut. {READ_RESULT.name} with name={name!r} reads all of it.]"

    async def _kept(self, arguments: Mapping[str, Any]) -> str:
        name = text_argument(arguments, "name")
        try:
            return await anyio.to_thread.run_sync(self._shelf.read, name)
        except KeyError:
            raise InvalidArguments(f"no result is kept as {name!r}, or no longer") from None

    # Looking

    def _search(self, arguments: Mapping[str, Any]) -> ToolResult:
        tools = tuple(self._tools())
        if self._searched is None or self._searched[0] != tools:
            self._searched = (tools, ToolSearch(tools))
        found = self._searched[1].find(text_argument(arguments, "query"), _MOST_FOUND)
        shown = [tool for tool in map(self._shown, found) if tool is not None]
        listed = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in shown]
        if not listed:
            return ToolResult((TextContent("No tool fits these words. Try other ones, more general ones."),))
        words = json.dumps(listed, ensure_ascii=False, default=str)
        return ToolResult((TextContent(marked(words, key=secrets.token_hex(8), source="the list of tools")),))

    def _tools(self) -> list[ToolDefinition]:
        wanted = self._rules.servers
        return [tool for tool in self._door.tools(self._caller) if wanted is None or tool.server in wanted]

    def _named(self, name: str) -> ToolDefinition | None:
        """The tool of this name, permitted or not: a refusal is the door's to speak, and to record."""
        wanted = self._rules.servers
        return next(
            (
                tool
                for tool in self._door.all_tools()
                if tool.name == name and (wanted is None or tool.server in wanted)
            ),
            None,
        )

    def _shown(self, tool: ToolDefinition) -> ModelTool | None:
        parameters = plain_schema(tool.parameters)
        if parameters is None:
            return None
        return ModelTool(tool.name, described(tool.description, server=tool.server), parameters)

    def _legs(self, which: ToolId) -> frozenset[Leg]:
        known = next((tool for tool in self._door.all_tools() if tool.id == which), None)
        upstream = (known.upstream,) if known is not None and known.upstream else ()
        return legs_of_tool(which.server, (which.tool, *upstream), self._rules.labels)


def _said_no(call: CallAsked, error: SquidbotError, *, tool: ToolId | None) -> Made:
    """A refusal as the model is told it: in our own words, with what it can do about it."""
    text = str(error)
    if isinstance(error, RateLimited):
        text = f"{text}; it may be tried again in {error.retry_after:.1f} seconds"
    elif isinstance(error, UnknownTool) and error.hint:
        text = f"{text}. {error.hint}"
    outcome: Outcome = "limited" if isinstance(error, RateLimited) else "refused"
    return Made(ToolMessage(call.id, call.name, (TextContent(text),), is_error=True), outcome, error.record, text, tool)
