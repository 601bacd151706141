"""What the core calls, and nothing else: each port is a noun with two or three methods.

Implementations satisfy these structurally; none of them inherits.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

from squidbot.core.domain.alerts import Alert
from squidbot.core.domain.audit import (
    Grants,
    Intent,
    RecordFilter,
    ToolCall,
    ToolExecution,
    Usage,
    Verification,
)
from squidbot.core.domain.callers import Envelope
from squidbot.core.domain.conversation import Message, ModelEvent, ModelTool
from squidbot.core.domain.errors import Problem
from squidbot.core.domain.happenings import Happening
from squidbot.core.domain.members import Identified, TokenRecord
from squidbot.core.domain.prompts import PromptDefinition, RenderedPrompt, ResourceContents, ResourceDefinition
from squidbot.core.domain.servers import ServerLog, ServerStatus
from squidbot.core.domain.tools import ToolDefinition, ToolId, ToolResult
from squidbot.core.domain.views import Series


class OnProgress(Protocol):
    """Hears of a call's progress: how far, of how much, and a word about it."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


Question: TypeAlias = Literal["sampling", "elicitation"]
"""What a server may ask of whoever is at the other end of a call."""


class Counterpart(Protocol):
    """Whoever is at the other end of a call, while it runs: a server's questions and log messages are for them.

    They reach them only when it is certain whose call they belong to: the stream or the answer of that very call, or
    all calls that are under way on a connection have the same `owner`.
    """

    @property
    def owner(self) -> str:
        """Whose call this is: a client session, or a person. Two calls of one owner may be mistaken for each other."""
        ...

    @property
    def envelope(self) -> Envelope | None:
        """What it said, if it is of the stateless era: a server of that era is told, and asks it by its answer."""
        ...

    async def ask(self, question: Question, server: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Params and result as on the wire; None if they cannot or will not answer. Raises Declined with a reason."""
        ...

    async def log(self, entry: ServerLog) -> None:
        """Raises nothing, and does not wait for long."""
        ...


class ToolPort(Protocol):
    """One tool that can be executed."""

    @property
    def definition(self) -> ToolDefinition: ...

    async def execute(
        self,
        arguments: Mapping[str, Any],
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        counterpart: Counterpart | None = None,
    ) -> ToolResult:
        """Run the tool. Raises nothing but cancellation: a failure is a result with `is_error`."""
        ...


class ToolRegistry(Protocol):
    """The index of all tools. A server's slice is replaced whole, so that no reader sees half a change."""

    def replace(self, server: str, tools: Sequence[ToolPort]) -> None:
        """Put `tools` in the place of all that `server` had; an empty sequence removes them."""
        ...

    def get(self, tool: ToolId) -> ToolPort | None: ...

    def find(self, name: str) -> ToolPort | None:
        """The tool that agents know by `name`."""
        ...

    def tools(self, server: str | None = None) -> Sequence[ToolPort]:
        """Every tool, or one server's, with the names that agents see."""
        ...


class ToolSource(Protocol):
    """Where tools come from: servers that can be connected, and asked how they are."""

    def server_names(self) -> Sequence[str]:
        """Every server of the settings that is enabled, in their order."""
        ...

    def connection(self, server_name: str) -> object:
        """The live server itself, for programs that are their own master. Raises KeyError."""
        ...

    def unavailable(self, server_name: str) -> str | None:
        """Why a server cannot be used now, in short and fit for a model; None if it can."""
        ...

    async def connect(self, server_name: str) -> bool: ...

    async def disconnect(self, server_name: str) -> None: ...

    def status(self, server_name: str) -> ServerStatus:
        """Raises KeyError for a name that the settings do not have."""
        ...

    def get_available_tools(self, server_name: str | None = None) -> list[ToolDefinition]: ...

    async def call_tool(
        self,
        server_name: str,
        tool_name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        counterpart: Counterpart | None = None,
    ) -> ToolResult:
        """Raises nothing but cancellation."""
        ...

    def get_prompts(self, server_name: str | None = None) -> list[PromptDefinition]: ...

    async def render_prompt(
        self,
        server_name: str,
        prompt_name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        counterpart: Counterpart | None = None,
    ) -> RenderedPrompt:
        """Raises MCPConnectionError, MCPRequestRefused or MCPProtocolError."""
        ...

    def get_resources(self, server_name: str | None = None) -> list[ResourceDefinition]: ...

    async def read_resource(
        self, server_name: str, uri: str, *, counterpart: Counterpart | None = None
    ) -> ResourceContents:
        """Raises MCPConnectionError, MCPRequestRefused or MCPProtocolError."""
        ...

    async def subscribe_resource(self, server_name: str, uri: str, *, wanted: bool = True) -> None:
        """Raises MCPConnectionError, MCPRequestRefused or MCPProtocolError."""
        ...

    async def complete(self, server_name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Params and result as on the wire. Raises MCPConnectionError, MCPRequestRefused or MCPProtocolError."""
        ...


class SchemaCheck(Protocol):
    """Holds a value against a JSON Schema that somebody else wrote."""

    async def problems(self, schema: Mapping[str, Any], value: Any) -> Sequence[Problem]:
        """All that does not fit, empty if it fits. A schema that is itself no schema constrains nothing."""
        ...

    async def aclose(self) -> None:
        """End whatever was started for the checks; a later check may start it again."""
        ...


class AuditLog(Protocol):
    """The record of all attempts. What it has answered is on disk; what it cannot keep it refuses."""

    async def begin(self, intent: Intent) -> None:
        """Keep what is about to happen. Raises NotRecorded."""
        ...

    async def close(self, record: ToolExecution) -> None:
        """Keep how it ended; an intent of the same id is closed by it. Raises NotRecorded.

        The record is handed over before anything is waited for: it is kept also if whoever waits is cancelled.
        """
        ...

    def records(self, wanted: RecordFilter, *, newest: int | None = None) -> AsyncIterator[ToolExecution]:
        """Matching records, oldest first; with `newest` only the last so many. Raises NotRecorded."""
        ...


class GrantStore(Protocol):
    """Grants that were made while running; they stand above those of the settings."""

    async def load(self) -> Grants:
        """Raises NotRecorded."""
        ...

    async def change(self, *, role: str, server: str, tool: str, enabled: bool, record: ToolExecution) -> Grants:
        """Make or withdraw a grant and keep the record of it, both or neither. Raises NotRecorded."""
        ...


class Permit(Protocol):
    """A place among the calls that may run side by side."""

    async def release(self) -> None:
        """Give the place back, also when whoever held it was cancelled. Raises nothing else."""
        ...


class RateLimiter(Protocol):
    """Counts calls, and says no to one too many."""

    async def acquire(self, role: str, tool: ToolId, *, changes: bool = True) -> Permit:
        """Take one call from every limit that concerns it, or from none.

        Raises RateLimited with the true wait. `changes` is false for tools that change nothing: when the count
        itself cannot be reached, those may pass.
        """
        ...


class LanguageModel(Protocol):
    """Something that reads a conversation and goes on with it."""

    @property
    def name(self) -> str: ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        tools: Sequence[ModelTool] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[ModelEvent]:
        """The next turn, as it comes: words, whole tool calls, usage, and why it stopped.

        A turn that breaks off and is begun anew says so with `Restarted`. Raises ModelError.
        """
        ...

    async def aclose(self) -> None:
        """Close its connections. Raises nothing."""
        ...


class Person(Protocol):
    """Somebody at a terminal."""

    async def ask(self, question: str) -> str | None:
        """What they type; None if there is nobody, or they want to say nothing."""
        ...

    def tell(self, text: str) -> None:
        """Show them something. Raises nothing."""
        ...


class ResultShelf(Protocol):
    """Keeps results that are too large for a model, for whoever wants to read on."""

    def keep(self, text: str) -> str:
        """The name under which it can be read; nobody can guess it. Raises OSError."""
        ...

    def read(self, name: str) -> str:
        """Raises KeyError for what is not kept, or no longer."""
        ...


class CallObserver(Protocol):
    """Hears of every attempt when it is over: metrics, alerts."""

    def observe(self, record: ToolExecution) -> None:
        """Raises nothing, and takes no time."""
        ...


class Tracing(Protocol):
    """Puts a call into whatever trace it is part of."""

    def span(self, call: ToolCall) -> AbstractContextManager[object]: ...


class AlertSink(Protocol):
    """Where alerts go: a log, a table, a webhook."""

    async def send(self, alert: Alert) -> None:
        """Raises nothing: whoever cannot be told is named in the log."""
        ...


class AlertMemory(Protocol):
    """What watching for the unusual has to know of earlier runs."""

    async def first_uses(self) -> set[tuple[str, str, str]]:
        """Every role, server and tool that have met. Raises NotRecorded."""
        ...

    async def note_first_use(self, role: str, server: str, tool: str) -> bool:
        """Remember that a role used a tool; whether that is new. Raises NotRecorded."""
        ...

    def records(self, wanted: RecordFilter, *, newest: int | None = None) -> AsyncIterator[ToolExecution]:
        """Matching records, oldest first. Raises NotRecorded."""
        ...


class Clock(Protocol):
    """Time, as a date for people and as seconds that never jump."""

    def timestamp(self) -> str:
        """Now in UTC, as in `2026-11-18T10:56:31.123456Z`."""
        ...

    def time(self) -> float:
        """Now in seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever go forward, whatever happens to the date."""
        ...


class TokenStore(Protocol):
    """Members, their tokens, and the keys that all gateways of one database share. All of it raises NotRecorded."""

    async def add_token(self, token: TokenRecord, *, record: ToolExecution) -> None:
        """Keep a token, its member, and the record of it: all or nothing."""
        ...

    async def find_token(self, name: str) -> TokenRecord | None:
        """The token with this id, revoked or expired or not."""
        ...

    async def tokens(self) -> Sequence[TokenRecord]:
        """All tokens, the newest last."""
        ...

    async def revoke_token(self, name: str, *, record: ToolExecution) -> bool:
        """Whether there was such a token to revoke."""
        ...

    async def key(self, name: str) -> bytes:
        """32 random bytes, made at the first question and then the same for everybody who uses this database."""
        ...


class Relay(Protocol):
    """Carries happenings between gateways."""

    def send(self, happening: Happening) -> None:
        """Neither waits nor raises: what cannot be carried is counted and named in the log."""
        ...


class Identity(Protocol):
    """Somebody else who vouches for people: tokens of an issuer that the settings name."""

    async def identify(self, token: str) -> Identified | None:
        """Who that is, by which role claim; None if the token is not one of theirs, or not valid. Raises nothing."""
        ...


class Trail(Protocol):
    """The record as people read it. All of it raises NotRecorded."""

    async def page(
        self, wanted: RecordFilter, *, newest: int, before: Mapping[str, int] | None = None
    ) -> tuple[list[ToolExecution], dict[str, int] | None]:
        """Matching records, newest first, and what to give as `before` for the next, older ones; None at the end."""
        ...

    async def get(self, name: str) -> ToolExecution | None: ...

    async def usage(self, wanted: RecordFilter) -> list[Usage]:
        """What each role made of each tool."""
        ...

    async def series(self, wanted: RecordFilter, *, begin: float, seconds: int, count: int) -> Series:
        """Calls counted and timed in so many spans of so many seconds."""
        ...

    async def verify(self) -> Verification: ...

    async def open_intents(self) -> int:
        """How many calls have begun and not ended."""
        ...

    async def alerts(self, *, newest: int | None = None) -> list[Alert]:
        """Alerts, oldest first."""
        ...
