"""What a caller may see, as on the wire: made once for each role and each state of the servers, then only handed out."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from squidbot.core.domain.callers import Caller
from squidbot.core.domain.endpoint import EndpointOptions
from squidbot.core.domain.prompts import PromptDefinition, ResourceDefinition
from squidbot.core.domain.text import visible
from squidbot.core.domain.tools import ToolDefinition, ToolId
from squidbot.core.services.door import AgentMCPService
from squidbot.gateway.mcp.wire import Written, encoded

Kind: TypeAlias = Literal["tools", "prompts", "resources", "templates"]
Item: TypeAlias = dict[str, Any]

METHODS: Mapping[Kind, str] = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
}
KEYS: Mapping[Kind, str] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "templates": "resourceTemplates",
}
_ROLES_KEPT = 256
_PAGES_KEPT = 64


@dataclass(frozen=True, slots=True)
class Listed:
    """One list, and a print by which it is told from another."""

    items: Sequence[Item]
    fingerprint: bytes
    pages: dict[tuple[int, int], Written] = field(default_factory=dict)

    def page(self, key: str, start: int, size: int) -> Written:
        """So many items, and where to go on: written down once, whoever asks."""
        page = self.pages.get((start, size))
        if page is None:
            following = {"nextCursor": str(start + size)} if start + size < len(self.items) else {}
            page = Written({key: self.items[start : start + size], **following})
            if len(self.pages) < _PAGES_KEPT:
                self.pages[start, size] = page
        return page


@dataclass(slots=True)
class _Kept:
    sources: list[Any]
    revision: str
    listed: Listed


class Lists:
    """The lists of the door, for each caller and part of it: all servers (`None`), or one of them."""

    def __init__(self, door: AgentMCPService, options: EndpointOptions) -> None:
        self._door = door
        self._options = options
        self._kept: dict[tuple[str, str | None, Kind], _Kept] = {}
        self._items: dict[tuple[int, bool], tuple[object, Item]] = {}

    def of(self, caller: Caller, server: str | None, kind: Kind) -> Listed:
        """What the caller sees, sorted."""
        sources = self._sources(server, kind)
        key = (caller.role, server, kind)
        kept, revision = self._kept.get(key), self._door.permissions.revision
        if kept is None or kept.revision != revision or not _same(kept.sources, sources):
            if len(self._kept) >= _ROLES_KEPT:
                self._kept.clear()
            kept = self._kept[key] = _Kept(sources, revision, self._listed(caller, server, kind))
        return kept.listed

    def tool(self, server: str | None, name: str) -> ToolDefinition | None:
        """The tool of that name on a part of the door, whoever may use it: by lookup, never by taking a name apart."""
        return self._door.find(name) if server is None else self._door.definition(ToolId(server, name))

    def schema(self, caller: Caller, server: str | None, name: str) -> Mapping[str, Any] | None:
        """The input schema that the caller was shown for a tool, if it was."""
        tool = self.tool(server, name)
        if tool is None or not self._door.permissions.decide(caller, tool.id, None, fixed=tool.fixed or None).allowed:
            return None
        return tool.parameters

    def prompt(self, caller: Caller, server: str | None, name: str) -> PromptDefinition | None:
        """The prompt of that name, among those of the caller."""
        found = self._door.prompts(caller, server)
        return next((item for item in found if (item.name if server is None else item.prompt) == name), None)

    def instructions(self, caller: Caller, server: str | None) -> str | None:
        """What the servers say about their use, each labelled with its name."""
        said = self._door.instructions(caller)
        if server is not None:
            return said.get(server)
        return "\n\n".join(f"# {name}\n{text}" for name, text in sorted(said.items())) or None

    def _sources(self, server: str | None, kind: Kind) -> list[Any]:
        match kind:
            case "tools":
                return self._door.all_tools()
            case "prompts":
                return list(self._door.source.get_prompts(server))
            case _:
                return list(self._door.source.get_resources(server))

    def _listed(self, caller: Caller, server: str | None, kind: Kind) -> Listed:
        items: Iterable[Item]
        match kind:
            case "tools":
                items = [self._item(tool, server, _tool) for tool in self._door.tools(caller, server)]
            case "prompts":
                items = [self._item(prompt, server, _prompt) for prompt in self._door.prompts(caller, server)]
            case _:
                wanted = kind == "templates"
                found = [item for item in self._door.resources(caller, server) if item.is_template == wanted]
                items = [self._item(item, server, _resource) for item in found]
        ordered = sorted(items, key=lambda item: str(item.get("name", "")) + "\0" + str(item.get("uri", "")))
        return Listed(ordered, hashlib.sha256(encoded(ordered)).digest())

    def _item(self, source: Any, server: str | None, make: Any) -> Item:
        """An item's form on the wire, made once for as long as its definition is the same object."""
        key = (id(source), server is None)
        known = self._items.get(key)
        if known is not None and known[0] is source:
            return known[1]
        if len(self._items) > 50_000:
            self._items.clear()
        item: Item = make(source, server is None, self._options.longest_description)
        self._items[key] = (source, item)
        return item


def _tool(tool: ToolDefinition, full: bool, longest: int) -> Item:
    own: Item = {"name": tool.name if full else tool.tool, "inputSchema": {"type": "object", **tool.parameters}}
    if tool.description:
        own["description"] = _cut(tool.description, longest)
    said = {key: value for key, value in tool.raw.items() if key != "description"}
    if tool.title is not None:
        own["title"] = tool.title
    if tool.output_schema is not None:
        own["outputSchema"] = tool.output_schema
    return _valid("tools", {**said, **own}, own)


def _prompt(prompt: PromptDefinition, full: bool, longest: int) -> Item:
    arguments = [
        {
            "name": item.name,
            **({"description": item.description} if item.description else {}),
            "required": item.required,
        }
        for item in prompt.arguments
    ]
    own: Item = {"name": prompt.name if full else prompt.prompt}
    if prompt.description:
        own["description"] = _cut(prompt.description, longest)
    said = {key: value for key, value in prompt.raw.items() if key != "description"}
    return _valid("prompts", {**said, **own}, {**own, "arguments": arguments})


def _resource(item: ResourceDefinition, full: bool, longest: int) -> Item:
    del full
    own: Item = {"uriTemplate" if item.is_template else "uri": item.uri, "name": item.name or item.uri}
    if item.description:
        own["description"] = _cut(item.description, longest)
    if item.mime_type is not None:
        own["mimeType"] = item.mime_type
    said = {key: value for key, value in item.raw.items() if key != "description"}
    return _valid("templates" if item.is_template else "resources", {**said, **own}, own)


def _valid(kind: Kind, whole: Item, bare: Item) -> Item:
    """All that a server said of an item, or if that is no valid item only what we know to be right."""
    try:
        methods.validate_server_result(METHODS[kind], LATEST_HANDSHAKE_VERSION, {KEYS[kind]: [whole]})
    except ValidationError:
        return bare
    return whole


def _cut(text: str, longest: int) -> str:
    seen = visible(text)
    return seen if len(seen) <= longest else f"{seen[: longest - 1]}…"


def _same(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Whether these are the same objects: definitions are values, and a new one is made where something changed."""
    return len(before) == len(now) and all(one is other for one, other in zip(before, now, strict=True))
