"""What the door answers, as on the wire: what a server said is passed on as it said it, where it can be."""

import base64
from collections.abc import Mapping
from typing import Any

from mcp_types import SERVER_INFO_META_KEY, methods
from pydantic import ValidationError

from squidbot.core.domain.content import AudioContent, BinaryContent, Content, ImageContent, TextContent
from squidbot.core.domain.prompts import RenderedPrompt, ResourceContents
from squidbot.core.domain.tools import ToolResult

INPUT_REQUIRED = "input_required"
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}


def call_result(result: ToolResult, *, modern: bool) -> dict[str, Any]:
    """A tool's answer."""
    said = result.raw or {}
    if modern and asks_for_input(said):
        return dict(said)
    wire = {
        key: value for key, value in said.items() if key not in ("content", "isError", "structuredContent", "_meta")
    }
    wire["content"] = _blocks(said.get("content"), result.content)
    structured = said.get("structuredContent") if said else result.structured
    # A mismatch with the tool's own schema took it out, and the handshake era knows objects only.
    if result.structured is not None and structured is not None and (modern or isinstance(structured, dict)):
        wire["structuredContent"] = structured
    if result.is_error or "isError" in said:
        wire["isError"] = result.is_error
    meta = dict(said["_meta"]) if isinstance(said.get("_meta"), dict) else {}
    if result.failure is not None and result.failure.retry_after is not None:
        meta["retry_after"] = result.failure.retry_after
    return _enveloped(wire, meta, modern=modern)


def prompt_result(rendered: RenderedPrompt, *, version: str, modern: bool) -> dict[str, Any]:
    """A filled prompt."""
    ours = {
        "description": rendered.description,
        "messages": [{"role": item.role, "content": _block(item.content)} for item in rendered.messages],
    }
    return _said("prompts/get", rendered.raw, ours, version=version, modern=modern)


def read_result(read: ResourceContents, *, version: str, modern: bool) -> dict[str, Any]:
    """What was read of a resource."""
    ours = {"contents": [_contents(block) for block in read.content]}
    return _said("resources/read", read.raw, ours, version=version, modern=modern)


def asks_for_input(said: Mapping[str, Any]) -> bool:
    """Whether a server of the stateless era asks for something before it answers."""
    return said.get("resultType") == INPUT_REQUIRED


def _said(method: str, said: Mapping[str, Any], ours: dict[str, Any], *, version: str, modern: bool) -> dict[str, Any]:
    if modern and asks_for_input(said):
        return dict(said)
    hints = {"ttlMs": 0, "cacheScope": "private"} if method == "resources/read" and modern else {}
    meta = dict(said["_meta"]) if isinstance(said.get("_meta"), Mapping) else {}
    for content in ({key: value for key, value in said.items() if key != "_meta"}, ours):
        # Whatever a server allows, nobody else may be given what was read for one role.
        wire = _enveloped({**hints, **content, **({"cacheScope": "private"} if hints else {})}, meta, modern=modern)
        try:
            methods.validate_server_result(method, version, wire)
        except ValidationError:
            continue
        return wire
    return wire


def _enveloped(wire: dict[str, Any], meta: dict[str, Any], *, modern: bool) -> dict[str, Any]:
    if modern:
        wire["resultType"] = "complete"
    else:
        for key in ("resultType", "ttlMs", "cacheScope"):
            wire.pop(key, None)
        meta.pop(SERVER_INFO_META_KEY, None)
    if meta:
        wire["_meta"] = meta
    return wire


def _blocks(said: Any, content: tuple[Content, ...]) -> list[Any]:
    """The server's blocks where they are valid, else what stands for them; then what we have added."""
    listed = said if isinstance(said, list) else []
    return [
        listed[number] if number < len(listed) and _is_valid(listed[number]) else _block(block)
        for number, block in enumerate(content)
    ]


def _is_valid(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    for key in ("annotations", "_meta"):
        if key in block and not isinstance(block[key], dict | None):
            return False
    kind = block.get("type")
    if kind == "resource":
        inner = block.get("resource")
        return (
            isinstance(inner, Mapping)
            and isinstance(inner.get("uri"), str)
            and (isinstance(inner.get("text"), str) or isinstance(inner.get("blob"), str))
        )
    texts = _TEXTS.get(kind) if isinstance(kind, str) else None
    return texts is not None and all(isinstance(block.get(key), str) for key in texts)


def _block(block: Content) -> dict[str, Any]:
    match block:
        case TextContent(text=text):
            return {"type": "text", "text": text}
        case ImageContent(data=data, mime_type=mime_type):
            return {"type": "image", "data": _encoded(data), "mimeType": mime_type}
        case AudioContent(data=data, mime_type=mime_type):
            return {"type": "audio", "data": _encoded(data), "mimeType": mime_type}
        case BinaryContent(kind="link", uri=uri, name=name, mime_type=mime_type):
            link = {"type": "resource_link", "uri": uri, "name": name or uri}
            return {**link, "mimeType": mime_type} if mime_type else link
        case BinaryContent():
            return {"type": "resource", "resource": _contents(block)}


def _contents(block: Content) -> dict[str, Any]:
    if not isinstance(block, BinaryContent):
        return {"uri": "", "text": block.text if isinstance(block, TextContent) else ""}
    wire: dict[str, Any] = {"uri": block.uri}
    if block.mime_type:
        wire["mimeType"] = block.mime_type
    if block.data is not None:
        return {**wire, "blob": _encoded(block.data)}
    return {**wire, "text": block.text or ""}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
