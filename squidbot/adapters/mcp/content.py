"""The protocol's blocks to the core's content: in this one place, block by block, whatever they are."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from squidbot.core.domain.content import AudioContent, BinaryContent, Content, ImageContent, TextContent
from squidbot.core.domain.prompts import PromptMessage, RenderedPrompt
from squidbot.core.domain.text import glimpse, visible
from squidbot.core.domain.tools import Failure, ToolResult

_NOTE = 200


def tool_result(raw: Mapping[str, Any], *, blocks: int, source: str = "the server") -> ToolResult:
    """A `tools/call` result as the core sees it; good blocks are kept, a bad one becomes a note."""
    if asks_for_input(raw):
        return ToolResult((TextContent(f"[{source} asks for input first: {_asked(raw)}]"),), raw=raw)
    is_error = raw.get("isError") is True
    listed = raw.get("content")
    if isinstance(listed, list) and len(listed) > blocks:
        return ToolResult.failed(
            f"{source}: the answer has {len(listed)} blocks, too many (limit {blocks})", "protocol"
        )
    content = _contents(listed)
    return ToolResult(
        content=content,
        structured=raw.get("structuredContent"),
        is_error=is_error,
        raw=raw,
        failure=Failure("tool") if is_error else None,
    )


def asks_for_input(raw: Mapping[str, Any] | None) -> bool:
    """Whether this is no answer yet: the server wants something of the client first."""
    return raw is not None and raw.get("resultType") == "input_required"


def resource_contents(raw: Mapping[str, Any]) -> tuple[Content, ...]:
    """What `resources/read` gave."""
    parts = raw.get("contents")
    if not isinstance(parts, list):
        return (_note("a resource without contents", raw),)
    return tuple(_embedded({"resource": part}) for part in parts)


def rendered_prompt(raw: Mapping[str, Any]) -> RenderedPrompt:
    """What `prompts/get` gave."""
    messages = raw.get("messages")
    description = raw.get("description")
    return RenderedPrompt(
        description=description if isinstance(description, str) else "",
        messages=tuple(
            PromptMessage(role=str(message.get("role", "user")), content=content_of(message.get("content")))
            for message in (messages if isinstance(messages, list) else ())
            if isinstance(message, Mapping)
        ),
        raw=raw,
    )


def content_of(block: Any) -> Content:
    """One block, whatever it is."""
    if not isinstance(block, dict):
        return _note("a block that is no object", block)
    match block.get("type"):
        case "text":
            text = block.get("text")
            return TextContent(text) if isinstance(text, str) else _note("a text block without text", block)
        case "image" | "audio" as kind:
            data = _decoded(block.get("data"))
            if data is None:
                return _note(f"an {kind} block whose data is no base64", block)
            mime_type = _text(block.get("mimeType")) or "application/octet-stream"
            return ImageContent(data, mime_type) if kind == "image" else AudioContent(data, mime_type)
        case "resource":
            return _embedded(block)
        case "resource_link":
            uri = block.get("uri")
            if not isinstance(uri, str):
                return _note("a link without a uri", block)
            return BinaryContent(uri, "link", name=_text(block.get("name")), mime_type=_text(block.get("mimeType")))
        case kind:
            return _note(f"a block of the unknown kind {str(kind)[:40]!r}", block)


def _contents(listed: Any) -> tuple[Content, ...]:
    if listed is None:
        return ()
    if isinstance(listed, list):
        return tuple([content_of(block) for block in listed])
    return (_note("content that is no list", listed),)


def _embedded(block: Mapping[str, Any]) -> Content:
    resource = block.get("resource")
    if not isinstance(resource, Mapping) or not isinstance(resource.get("uri"), str):
        return _note("a resource without a uri", block)
    text, blob = resource.get("text"), resource.get("blob")
    data = _decoded(blob)
    if blob is not None and data is None:
        return _note(f"the resource {resource['uri'][:80]!r}, whose data is no base64", block)
    return BinaryContent(
        resource["uri"],
        "embedded",
        name=_text(resource.get("name")),
        mime_type=_text(resource.get("mimeType")),
        data=data,
        text=_text(text),
    )


def _asked(raw: Mapping[str, Any]) -> str:
    requests = raw.get("inputRequests")
    return (
        ", ".join(sorted(str(name)[:40] for name in requests)[:10]) if isinstance(requests, Mapping) else "nothing yet"
    )


def _decoded(data: Any) -> bytes | None:
    if not isinstance(data, str):
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _note(what: str, found: Any) -> TextContent:
    """What stands in the place of a block that cannot be used."""
    return TextContent(f"[left out: {visible(what)}: {visible(glimpse(found, _NOTE))}]")
