"""Prompts, resources and resource templates as values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from squidbot.core.domain.content import Content


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class PromptDefinition:
    """A prompt that a server offers; `name` is the one that agents see."""

    server: str
    prompt: str
    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a rendered prompt."""

    role: str
    content: Content


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt filled with its arguments."""

    description: str
    messages: tuple[PromptMessage, ...]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ResourceContents:
    """What was read of a resource; going through it gives its blocks."""

    content: tuple[Content, ...]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """As the server said it."""

    def __iter__(self) -> Iterator[Content]:
        return iter(self.content)


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """A resource, or with `is_template` a family of them, that a server offers."""

    server: str
    uri: str
    name: str = ""
    description: str = ""
    mime_type: str | None = None
    size: int | None = None
    is_template: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
