"""What a server lists, item by item: one bad schema costs one tool, never the server."""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from loguru import logger

from squidbot.core.domain.prompts import PromptArgument, PromptDefinition, ResourceDefinition
from squidbot.core.domain.schemas import safe_schema
from squidbot.core.domain.text import visible
from squidbot.core.domain.tools import ToolDefinition

DESCRIPTION_LIMIT = 4096
"""Characters of a description that models and people get to see."""
NAME_LIMIT = 256
_NAMED = 5
"""How many of the items that are left out of one list are spoken of by name."""

T = TypeVar("T")


class Unusable(Exception):
    """Why one listed item is left out."""


class LeftOut:
    """What is left out of one list: the first few are named, the rest is counted, so that no log fills up."""

    def __init__(self, server: str, kind: str) -> None:
        self._server = server
        self._kind = kind
        self._count = 0

    def add(self, item: Any, reason: object) -> None:
        self._count += 1
        if self._count <= _NAMED:
            label = str(item.get("name", "?") if isinstance(item, Mapping) else item)[:80]
            logger.bind(server=self._server).warning(
                "server {!r}: {} {!r} is left out: {}", self._server, self._kind, label, str(reason)[:200]
            )

    def sum_up(self) -> None:
        if self._count > _NAMED:
            more = self._count - _NAMED
            logger.bind(server=self._server).warning(
                "server {!r}: {} more {}s are left out", self._server, more, self._kind
            )


def tools_of(
    items: Iterable[Any], *, server: str, allow: Iterable[str] | None, deny: Iterable[str]
) -> list[ToolDefinition]:
    """The tools among `items` that can be used and that the settings want; of two with one name the first."""
    found = _usable(items, lambda item: _tool(item, server), server=server, kind="tool", name=lambda tool: tool.tool)
    return [
        tool
        for tool in found
        if (allow is None or any(fnmatchcase(tool.tool, glob) for glob in allow))
        and not any(fnmatchcase(tool.tool, glob) for glob in deny)
    ]


def prompts_of(items: Iterable[Any], *, server: str) -> list[PromptDefinition]:
    """The prompts among `items` that can be used."""
    return _usable(
        items, lambda item: _prompt(item, server), server=server, kind="prompt", name=lambda found: found.prompt
    )


def resources_of(items: Iterable[Any], *, server: str, templates: bool = False) -> list[ResourceDefinition]:
    """The resources, or with `templates` the resource templates, among `items` that can be used."""
    return _usable(
        items,
        lambda item: _resource(item, server, templates),
        server=server,
        kind="resource",
        name=lambda found: found.uri,
    )


def _usable(
    items: Iterable[Any], convert: Callable[[Mapping[str, Any]], T], *, server: str, kind: str, name: Callable[[T], str]
) -> list[T]:
    usable: dict[str, T] = {}
    left_out = LeftOut(server, kind)
    for item in items:
        try:
            if not isinstance(item, Mapping):
                raise Unusable("it is no object")
            converted = convert(item)
            if name(converted) in usable:
                raise Unusable("another of the same name came first")
            usable[name(converted)] = converted
        except Unusable as reason:
            left_out.add(item, reason)
    left_out.sum_up()
    return list(usable.values())


def _tool(item: Mapping[str, Any], server: str) -> ToolDefinition:
    name = _name(item.get("name"))
    schema = item.get("inputSchema", {})
    if not isinstance(schema, Mapping):
        raise Unusable("its inputSchema is no object")
    if schema.get("type", "object") != "object":
        raise Unusable(f"its inputSchema is of type {str(schema.get('type'))[:40]!r}, not 'object'")
    if not isinstance(schema.get("properties", {}), Mapping):
        raise Unusable("the properties of its inputSchema are no object")
    output = item.get("outputSchema")
    annotations = item.get("annotations")
    return ToolDefinition(
        server=server,
        tool=name,
        name=name,
        description=_description(item),
        parameters=safe_schema(_readable(schema)),
        output_schema=output if isinstance(output, Mapping) else None,
        title=_optional(item.get("title")),
        annotations=annotations if isinstance(annotations, Mapping) else {},
        raw=item,
    )


def _prompt(item: Mapping[str, Any], server: str) -> PromptDefinition:
    name = _name(item.get("name"))
    arguments = item.get("arguments") or []
    if not isinstance(arguments, list):
        raise Unusable("its arguments are no list")
    return PromptDefinition(
        server=server,
        prompt=name,
        name=name,
        description=_description(item),
        arguments=tuple(
            PromptArgument(argument["name"], _description(argument), argument.get("required") is True)
            for argument in arguments
            if isinstance(argument, Mapping) and isinstance(argument.get("name"), str)
        ),
        raw=item,
    )


def _resource(item: Mapping[str, Any], server: str, templates: bool) -> ResourceDefinition:
    uri = item.get("uriTemplate" if templates else "uri")
    if not isinstance(uri, str) or not uri:
        raise Unusable("it has no uri")
    size = item.get("size")
    return ResourceDefinition(
        server=server,
        uri=uri,
        name=_optional(item.get("name")) or "",
        description=_description(item),
        mime_type=_optional(item.get("mimeType")),
        size=size if isinstance(size, int) else None,
        is_template=templates,
        raw=item,
    )


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise Unusable("it has no name")
    if len(name) > NAME_LIMIT:
        raise Unusable(f"its name has more than {NAME_LIMIT} characters")
    return name


def _description(item: Mapping[str, Any]) -> str:
    text = item.get("description")
    if not isinstance(text, str):
        return ""
    text = visible(text[: DESCRIPTION_LIMIT + 1])
    return text if len(text) <= DESCRIPTION_LIMIT else text[: DESCRIPTION_LIMIT - 1] + "…"


def _readable(part: Any) -> Any:
    """A schema with nothing unseen in the words that models read of it; what values must equal stays as it is."""
    match part:
        case Mapping():
            return {
                key: visible(value[:DESCRIPTION_LIMIT])
                if key in ("description", "title") and isinstance(value, str)
                else _readable(value)
                for key, value in part.items()
            }
        case list():
            return [_readable(value) for value in part]
        case _:
            return part


def _optional(value: Any) -> str | None:
    return visible(value[:DESCRIPTION_LIMIT]) if isinstance(value, str) else None
