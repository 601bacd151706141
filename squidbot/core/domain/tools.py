"""Tools as values: which one, what it takes, what it answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from squidbot.core.domain.content import Content, TextContent, text_of

FailureKind: TypeAlias = Literal["tool", "server", "unavailable", "timeout", "protocol", "unknown_tool"]
"""Who is to blame for an error result: the tool itself, or what stands between it and us."""


class ToolId(NamedTuple):
    """Which tool: this pair, never a joined string."""

    server: str
    tool: str

    def __str__(self) -> str:
        return f"{self.server}/{self.tool}"


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What a server says of one of its tools; `name` is the one that agents see."""

    server: str
    tool: str
    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    title: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that the settings have set; no caller can change them."""
    upstream: str | None = None
    """What the server itself calls the tool, if the settings have given it another name."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def id(self) -> ToolId:
        return ToolId(self.server, self.tool)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool in the flat form that simple agents read."""

    name: str
    type: str
    description: str = ""
    required: bool = False
    default: Any = None
    enum: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a result is an error, for programs; the words for people are in the content."""

    kind: FailureKind
    status: int | None = None
    retry_after: float | None = None
    error: Mapping[str, Any] | None = None
    """The protocol's own error (`code`, `message`, perhaps `data`), where the server answered with one."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to: content in order, structured content, and whether it failed."""

    content: tuple[Content, ...] = ()
    structured: Any = None
    is_error: bool = False
    raw: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    failure: Failure | None = None
    record: str | None = field(default=None, compare=False)
    """The id of the call's record, if it went through the guarded door."""

    @property
    def text(self) -> str:
        return text_of(self.content)

    @classmethod
    def failed(
        cls,
        message: str,
        kind: FailureKind,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        error: Mapping[str, Any] | None = None,
    ) -> "ToolResult":
        """An error result in our own words, where the server gave none."""
        return cls(
            content=(TextContent(message),),
            is_error=True,
            failure=Failure(kind, status=status, retry_after=retry_after, error=error),
        )


def with_fixed(arguments: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with those that are fixed in their place, also of other spellings: to some servers `Branch` is `branch`."""
    if not fixed:
        return dict(arguments)
    names = {name.casefold() for name in fixed}
    return {**{name: value for name, value in arguments.items() if str(name).casefold() not in names}, **fixed}
