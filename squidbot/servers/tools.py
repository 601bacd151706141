"""What a tool of a bundled server is: its name, its schemas, honest hints of what it does, and the function that does it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mcp_types import ContentBlock, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict

World = TypeVar("World")
"""What the tools of one server work on: a sandbox, repositories, a client of an API."""


class Arguments(BaseModel):
    """Arguments of a tool; a name that it does not have is an error, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def spoken(text: str) -> str:
    """For a text that must say something, in an argument's AfterValidator."""
    if not text.strip():
        raise ValueError("say something: it is blank")
    return text


class Result(BaseModel):
    """The structured part of an answer."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """The structured part of an answer, and the blocks that a model reads."""

    result: Result
    blocks: tuple[ContentBlock, ...]


@dataclass(frozen=True, slots=True)
class Tool(Generic[World]):
    """One tool: how it is announced, and what it does."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[Result]
    annotations: ToolAnnotations
    run: Callable[[World, Any], Answer | Awaitable[Answer]]
    """An `async def` runs in the loop, a plain function in a thread of its own."""

    @property
    def changes(self) -> bool:
        return not self.annotations.read_only_hint


def reading(*, open_world: bool = False) -> ToolAnnotations:
    """For a tool that changes nothing; `open_world` if it asks something outside this machine."""
    return ToolAnnotations(read_only_hint=True, open_world_hint=open_world)


def changing(*, destructive: bool, idempotent: bool, open_world: bool = False) -> ToolAnnotations:
    """For a tool that changes something: can it lose anything, and is doing it twice the same as once."""
    return ToolAnnotations(
        read_only_hint=False, destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=open_world
    )


def said(result: Result, text: str) -> Answer:
    """An answer of one text."""
    return Answer(result, (TextContent(text=text),))
