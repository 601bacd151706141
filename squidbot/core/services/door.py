"""The guarded door: the only way from an agent, a client or a person to a tool.

The order of `execute_tool` is a security property: resolve, permission, registry, schema, limit, intent, call, record.
We refuse by raising, tools fail by returning, and both are on disk before anybody is told.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypeVar

import anyio

from squidbot.core.domain.audit import RecordKind, ToolCall
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.content import text_of
from squidbot.core.domain.errors import (
    InvalidArguments,
    NotRecorded,
    Problem,
    SquidbotError,
    ToolNotPermitted,
    UnknownTool,
)
from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.naming import nearest
from squidbot.core.domain.prompts import PromptDefinition, RenderedPrompt, ResourceContents, ResourceDefinition
from squidbot.core.domain.recorded import contents_without_secrets, prompt_without_secrets
from squidbot.core.domain.tools import ToolDefinition, ToolId, ToolResult, with_fixed
from squidbot.core.ports import (
    Counterpart,
    GrantStore,
    OnProgress,
    RateLimiter,
    SchemaCheck,
    ToolPort,
    ToolRegistry,
    ToolSource,
    Tracing,
)
from squidbot.core.services.hub import Hub
from squidbot.core.services.patience import aside
from squidbot.core.services.permissions import Permissions
from squidbot.core.services.progressing import Progressing
from squidbot.core.services.questions import Questions
from squidbot.core.services.recording import Attempt, Recorder

T = TypeVar("T")
_NO_SPAN: AbstractContextManager[object] = nullcontext()
_LOOK = 1.0
"""Seconds between two looks at grants that others may have changed."""
ReadOnly: TypeAlias = Callable[[ToolId], bool]
"""Whether the settings list a tool as one that changes nothing."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the door is made of; `lifetimes` are entered and left with it, in this order and back."""

    source: ToolSource
    registry: ToolRegistry
    permissions: Permissions
    schemas: SchemaCheck
    limiter: RateLimiter
    recorder: Recorder
    grants: GrantStore
    read_only: ReadOnly
    tracing: Tracing | None = None
    hub: Hub = field(default_factory=Hub)
    lifetimes: tuple[AbstractAsyncContextManager[Any], ...] = ()


class AgentMCPService:
    """Tools, prompts and resources for roles. A role given as text is one that a program of this machine acts in."""

    def __init__(self, parts: Parts) -> None:
        self.permissions = parts.permissions
        self.recorder = parts.recorder
        self.source = parts.source
        self.hub = parts.hub
        self._parts = parts
        self._stack = AsyncExitStack()
        self.permissions.on_change = lambda: self.hub.publish(Happening("grants"), local=True)
        self.questions = Questions(parts.recorder, parts.permissions)
        self._subscribed: Counter[tuple[str, str]] = Counter()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for part in self._parts.lifetimes:
                await stack.enter_async_context(part)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    # Looking

    async def initialize_agent_tools(self, role: Caller | str) -> dict[str, Any]:
        """Connect the servers of a role; those that came up, by name. An unknown role has none."""
        caller = _caller(role)
        await self.permissions.refresh(caller)
        wanted = [name for name in self.source.server_names() if self.permissions.has_server(caller, name)]
        connected: dict[str, Any] = {}

        async def connect(name: str) -> None:
            if await self.source.connect(name):
                connected[name] = self.source.connection(name)

        async with anyio.create_task_group() as tasks:
            for name in wanted:
                tasks.start_soon(connect, name)
        return {name: connected[name] for name in wanted if name in connected}

    def get_available_tools(self, role: Caller | str) -> dict[str, list[str]]:
        """The tools that a role may call now, by server."""
        found: dict[str, list[str]] = {}
        for tool in self.tools(_caller(role)):
            found.setdefault(tool.server, []).append(tool.tool)
        return found

    def tools(self, caller: Caller, server: str | None = None) -> list[ToolDefinition]:
        """The tools that the caller may call, under the names that agents see."""
        listed = [tool.definition for tool in self._parts.registry.tools(server)]
        return [
            tool for tool in listed if self.permissions.decide(caller, tool.id, None, fixed=tool.fixed or None).allowed
        ]

    def all_tools(self) -> list[ToolDefinition]:
        """Every tool there is, for the person whose settings these are: naming one is not calling it."""
        return [tool.definition for tool in self._parts.registry.tools()]

    def find(self, name: str) -> ToolDefinition | None:
        """The tool that agents know by `name`, whoever may use it."""
        port = self._parts.registry.find(name)
        return None if port is None else port.definition

    def definition(self, which: ToolId) -> ToolDefinition | None:
        """What is known of a tool, whoever may use it."""
        port = self._parts.registry.get(which)
        return None if port is None else port.definition

    def prompts(self, caller: Caller, server: str | None = None) -> list[PromptDefinition]:
        """The prompts of the servers that the caller has."""
        return [item for item in self.source.get_prompts(server) if self.permissions.has_server(caller, item.server)]

    def resources(self, caller: Caller, server: str | None = None) -> list[ResourceDefinition]:
        """The resources of the servers that the caller has."""
        return [item for item in self.source.get_resources(server) if self.permissions.has_server(caller, item.server)]

    def is_read_only(self, tool: ToolId) -> bool:
        """Whether the settings list a tool as one that changes nothing."""
        return self._parts.read_only(tool)

    def instructions(self, caller: Caller) -> dict[str, str]:
        """What the servers that the caller has say about their use."""
        statuses = [self.source.status(name) for name in self.source.server_names()]
        return {
            status.name: status.instructions
            for status in statuses
            if status.instructions and self.permissions.has_server(caller, status.name)
        }

    # Using

    async def execute_tool(
        self,
        role: Caller | str,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        counterpart: Counterpart | None = None,
    ) -> ToolResult:
        """Call a tool in a role; `counterpart` is whoever can answer what its server asks meanwhile.

        Raises ToolNotPermitted, UnknownTool, InvalidArguments, RateLimited, NotRecorded; a failure of the tool or of
        its server is a result with `is_error`.
        """
        caller, which = _caller(role), ToolId(str(server), str(tool))
        if arguments is not None and not _is_object(arguments):
            error = InvalidArguments(
                f"the arguments of {which} do not fit:", [Problem("", "must be an object: names and their values")]
            )
            await self.refuse(caller, which, {}, error)
            raise error
        try:
            await self.permissions.refresh(caller)
        except anyio.get_cancelled_exc_class():
            await self._abandoned(
                self.recorder.attempt(caller, which, arguments or {}, revision=self.permissions.revision)
            )
            raise
        port = self._parts.registry.get(which)
        final = with_fixed(arguments or {}, port.definition.fixed if port is not None else {})
        attempt = self.recorder.attempt(caller, which, final, revision=self.permissions.revision)
        try:
            found = await self._admitted(caller, which, port, final)
            if isinstance(found, ToolResult):
                return await self._answered(attempt, found)
            changes = not self._parts.read_only(which)
            permit = await self._parts.limiter.acquire(caller.role, which, changes=changes)
        except SquidbotError as error:
            await self.recorder.refused(attempt, error)
            raise
        except anyio.get_cancelled_exc_class():
            await self._abandoned(attempt)
            raise
        try:
            await self.recorder.intend(attempt, changes=changes)
            call = ToolCall(attempt.id, caller, which, final)
            result = await self._executed(
                attempt, call, found, timeout=timeout, on_progress=on_progress, counterpart=counterpart
            )
        finally:
            await permit.release()
        return await self._answered(attempt, result)

    async def refuse_unknown(self, caller: Caller, name: str, arguments: Mapping[str, Any], error: UnknownTool) -> None:
        """Record that somebody asked for a tool by a name that is none. Raises NotRecorded."""
        await self.refuse(caller, ToolId("", name), arguments, error)

    async def refuse(
        self,
        caller: Caller,
        which: ToolId,
        arguments: Mapping[str, Any],
        error: SquidbotError,
        *,
        kind: RecordKind = "call",
    ) -> None:
        """Record that whoever acts for the caller would not make a call, and why. Raises NotRecorded."""
        attempt = self.recorder.attempt(caller, which, arguments, revision=self.permissions.revision, kind=kind)
        await self.recorder.refused(attempt, error)

    async def answer(self, caller: Caller, tool: str, arguments: Mapping[str, Any], result: ToolResult) -> ToolResult:
        """Record a call of a tool of squidbot's own, which no server has, and give its answer. Raises NotRecorded."""
        attempt = self.recorder.attempt(caller, ToolId("", tool), arguments, revision=self.permissions.revision)
        return await self._answered(attempt, result)

    async def render_prompt(
        self,
        caller: Caller,
        server: str,
        prompt: str,
        arguments: Mapping[str, str] | None = None,
        *,
        counterpart: Counterpart | None = None,
    ) -> RenderedPrompt:
        """Fill a prompt. Raises as `execute_tool`, and MCPConnectionError, MCPRequestRefused, MCPProtocolError."""

        async def ask() -> RenderedPrompt:
            asked = self.questions.recorded(counterpart, caller)
            return await self.source.render_prompt(server, prompt, arguments, counterpart=asked)

        what = ToolId(server, prompt)
        rendered = await self._beside(caller, what, arguments or {}, kind="prompt", ask=ask, kept=_messages)
        return await aside(partial(prompt_without_secrets, rendered, self.recorder.redactor), rendered.raw)

    async def read_resource(
        self, caller: Caller, server: str, uri: str, *, counterpart: Counterpart | None = None
    ) -> ResourceContents:
        """Read a resource. Raises as `render_prompt`."""

        async def ask() -> ResourceContents:
            asked = self.questions.recorded(counterpart, caller)
            return await self.source.read_resource(server, uri, counterpart=asked)

        what = ToolId(server, uri)
        read = await self._beside(caller, what, {"uri": uri}, kind="resource", ask=ask, kept=_sizes)
        return await aside(partial(contents_without_secrets, read, self.recorder.redactor), read.raw)

    async def complete(self, caller: Caller, server: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Completions of a prompt's or a template's argument; params and result as on the wire. Raises as `render_prompt`."""

        async def ask() -> Mapping[str, Any]:
            return await self.source.complete(server, params)

        match params.get("ref"):
            case {"name": str(named)} | {"uri": str(named)}:
                what = ToolId(server, named)
            case _:
                what = ToolId(server, "")
        return await self._beside(caller, what, params, kind="completion", ask=ask, kept=_suggested)

    async def subscribe(self, caller: Caller, server: str, uri: str, *, wanted: bool = True) -> None:
        """Hear of updates of a resource (`resource_updated`), or no longer. Raises as `render_prompt`.

        A server is told once, however many want to hear: whoever subscribed has to say when it no longer wants to.
        """

        async def ask() -> None:
            before = self._subscribed[server, uri]
            self._subscribed[server, uri] += 1 if wanted else -min(before, 1)
            if before != (0 if wanted else 1):
                return
            try:
                await self.source.subscribe_resource(server, uri, wanted=wanted)
            except BaseException:
                self._subscribed[server, uri] -= 1 if wanted else 0
                raise
            finally:
                self._subscribed += Counter()  # what nobody wants is no longer counted

        arguments = {"uri": uri, "wanted": wanted}
        await self._beside(caller, ToolId(server, uri), arguments, kind="subscription", ask=ask, kept=_nothing)

    # Changing

    async def change_grant(self, caller: Caller, *, role: str, server: str, tool: str, enabled: bool) -> str:
        """Grant or revoke, above the settings, and record who did; the record's id. Raises NotRecorded."""
        arguments = {"role": role, "server": server, "tool": tool, "enabled": enabled}
        attempt = self.recorder.attempt(
            caller, ToolId(server, tool), arguments, revision=self.permissions.revision, kind="grant"
        )
        record = self.recorder.record(attempt, outcome="ok")
        await self._parts.grants.change(role=role, server=server, tool=tool, enabled=enabled, record=record)
        await self.permissions.refresh(now=True, told=True)
        self.hub.publish(Happening("grants", server, arguments))
        return attempt.id

    async def follow_grants(self) -> None:
        """Notice grants that another process changes, for as long as this runs; then the hub says so."""
        while True:
            await anyio.sleep(_LOOK)
            with suppress(NotRecorded):  # a call that cannot be decided on will say so itself
                await self.permissions.refresh()

    # Inside

    async def _admitted(
        self, caller: Caller, which: ToolId, port: ToolPort | None, arguments: Mapping[str, Any]
    ) -> ToolPort | ToolResult:
        """The tool to call, or the answer if its server is not there. Raises whatever stands against the call."""
        decision = self.permissions.decide(caller, which, arguments)
        if not decision.allowed:
            raise _not_permitted(caller, f"{which.tool!r} of server {which.server!r}", decision.reason)
        if port is None:
            return self._missing(which)
        given = {name: value for name, value in arguments.items() if name not in port.definition.fixed}
        problems = await self._parts.schemas.problems(port.definition.parameters, given)
        if problems:
            error = InvalidArguments(f"the arguments do not fit {port.definition.name!r}:", problems)
            error.hint = f"See 'squidbot tools show {port.definition.name}'."
            raise error
        return port

    def _missing(self, which: ToolId) -> ToolResult:
        """What is said of a tool that the registry does not have. Raises UnknownTool unless its server is away."""
        if which.server in self.source.server_names():
            reason = self.source.unavailable(which.server)
            if reason is not None:
                return ToolResult.failed(f"server {which.server!r} is not available: {reason}", "unavailable")
        known = [tool.definition.tool for tool in self._parts.registry.tools(which.server)]
        raise UnknownTool(f"server {which.server!r} has no tool {which.tool!r}", nearest=nearest(which.tool, known))

    async def _executed(
        self,
        attempt: Attempt,
        call: ToolCall,
        port: ToolPort,
        *,
        timeout: float | None,
        on_progress: OnProgress | None,
        counterpart: Counterpart | None,
    ) -> ToolResult:
        tracing = self._parts.tracing
        asked = self.questions.recorded(counterpart, call.caller)
        if self.hub.is_heard("progress"):
            on_progress = Progressing(
                call, on_progress, hub=self.hub, clock=self.recorder.clock, redactor=self.recorder.redactor
            )
        try:
            with tracing.span(call) if tracing is not None else _NO_SPAN:
                return await port.execute(call.arguments, timeout=timeout, on_progress=on_progress, counterpart=asked)
        except anyio.get_cancelled_exc_class():
            await self._abandoned(attempt)
            raise
        except Exception as error:  # noqa: BLE001  a tool never raises into the agent
            return ToolResult.failed(f"{call.tool} failed inside squidbot: {type(error).__name__}", "server")

    async def _abandoned(self, attempt: Attempt) -> None:
        """Record that whoever asked is gone. Raises NotRecorded."""
        await self.recorder.failed(attempt, "the caller did not wait for the answer", outcome="cancelled")

    async def _answered(self, attempt: Attempt, result: ToolResult) -> ToolResult:
        """Record the answer, then give it, without any secret of the settings in it."""
        given = await self.recorder.answered(attempt, result)
        # By hand, not by `replace`, which takes as long as the rest of the way.
        return ToolResult(given.content, given.structured, given.is_error, given.raw, given.failure, attempt.id)

    async def _beside(
        self,
        caller: Caller,
        what: ToolId,
        arguments: Mapping[str, Any],
        *,
        kind: Literal["prompt", "resource", "completion", "subscription"],
        ask: Callable[[], Awaitable[T]],
        kept: Callable[[T], Any],
    ) -> T:
        """What is no tool of a server, but comes from it: the same wall, the same limits, the same record."""
        await self.permissions.refresh(caller)
        attempt = self.recorder.attempt(caller, what, arguments, revision=self.permissions.revision, kind=kind)
        try:
            if not self.permissions.has_server(caller, what.server):
                reason = f"role {caller.role!r} has nothing of server {what.server!r}"
                raise _not_permitted(caller, f"the {kind} {what.tool!r} of server {what.server!r}", reason)
            permit = await self._parts.limiter.acquire(caller.role, what, changes=False)
        except SquidbotError as error:
            await self.recorder.refused(attempt, error)
            raise
        except anyio.get_cancelled_exc_class():
            await self._abandoned(attempt)
            raise
        try:
            await self.recorder.intend(attempt, changes=False)
            answer = await self._asked(attempt, ask)
        finally:
            await permit.release()
        await self.recorder.done(attempt, kept(answer))
        return answer

    async def _asked(self, attempt: Attempt, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return await ask()
        except NotRecorded:
            raise
        except SquidbotError as error:
            await self.recorder.failed(attempt, str(error), outcome="server_error")
            error.record = attempt.id
            raise
        except anyio.get_cancelled_exc_class():
            await self._abandoned(attempt)
            raise


def _caller(role: object) -> Caller:
    """Who is meant; what is no role's name, None for one, is nobody's."""
    match role:
        case Caller():
            return role
        case str():
            return Caller(role)
        case _:
            return Caller("")


def _is_object(arguments: object) -> bool:
    return isinstance(arguments, Mapping)


def _not_permitted(caller: Caller, what: str, reason: str) -> ToolNotPermitted:
    error = ToolNotPermitted(f"role {caller.role!r} may not use {what}: {reason}")
    error.hint = f"'squidbot roles show {caller.role}' lists what it may use."
    return error


def _messages(rendered: RenderedPrompt) -> dict[str, Any]:
    return {"messages": len(rendered.messages), "text": text_of(message.content for message in rendered.messages)}


def _sizes(read: ResourceContents) -> dict[str, Any]:
    return {"blocks": len(read.content), "text": text_of(read.content)}


def _suggested(completion: Mapping[str, Any]) -> dict[str, Any]:
    values = completion.get("values")
    return {"values": len(values) if isinstance(values, list) else 0}


def _nothing(answer: None) -> dict[str, Any]:
    del answer
    return {}
