"""Anthropic's messages on the wire: a conversation as they read it, and a turn gathered from its pieces."""

from base64 import b64encode
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from squidbot.adapters.models.definition import Input
from squidbot.adapters.models.openai_wire import arguments_object
from squidbot.core.domain.content import Content, ImageContent, text_of
from squidbot.core.domain.conversation import (
    CallAsked,
    Message,
    ModelMessage,
    ModelStop,
    ModelTool,
    ToolMessage,
    UserMessage,
)

_STOPS: dict[str, ModelStop] = {"tool_use": "calls", "max_tokens": "length", "refusal": "refused"}
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def anthropic_tool(tool: ModelTool) -> dict[str, Any]:
    """A tool as it is offered."""
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def anthropic_messages(messages: Sequence[Message], *, inputs: Collection[Input]) -> list[dict[str, Any]]:
    """The conversation, person and model taking turns: answers of tools are the person's part."""
    written: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if isinstance(message, ModelMessage) else "user"
        blocks = _blocks(message, inputs)
        if written and written[-1]["role"] == role:
            written[-1]["content"] += blocks
        elif blocks:
            written.append({"role": role, "content": blocks})
    return written


@dataclass(slots=True)
class Gathering:
    """A turn as it comes, piece by piece."""

    stop: ModelStop | None = None
    read: int = 0
    written: int = 0
    _calls: dict[int, dict[str, str]] = field(default_factory=dict)

    def take(self, event: Any) -> str:
        """One piece; its words."""
        match event.type:
            case "message_start":
                usage = event.message.usage
                cached = (
                    getattr(usage, "cache_read_input_tokens", 0),
                    getattr(usage, "cache_creation_input_tokens", 0),
                )
                self.read = (usage.input_tokens or 0) + sum(count or 0 for count in cached)
            case "content_block_start" if event.content_block.type == "tool_use":
                block = event.content_block
                self._calls[event.index] = {"id": block.id, "name": block.name, "arguments": ""}
            case "content_block_start" if event.content_block.type == "text":
                return event.content_block.text or ""
            case "content_block_delta" if event.delta.type == "text_delta":
                return event.delta.text or ""
            case "content_block_delta" if event.delta.type == "input_json_delta":
                if event.index in self._calls:
                    self._calls[event.index]["arguments"] += event.delta.partial_json or ""
            case "message_delta":
                if event.delta.stop_reason:
                    self.stop = _STOPS.get(event.delta.stop_reason, "end")
                self.written = event.usage.output_tokens or self.written
        return ""

    def calls(self) -> Iterator[CallAsked]:
        """The calls, whole."""
        for call in self._calls.values():
            yield CallAsked(call["id"], call["name"], call["arguments"] or "{}")


def _blocks(message: Message, inputs: Collection[Input]) -> list[dict[str, Any]]:
    match message:
        case UserMessage(text=text):
            return [{"type": "text", "text": text}] if text.strip() else []
        case ModelMessage(text=text, calls=calls):
            said = [{"type": "text", "text": text.rstrip()}] if text.strip() else []
            return [*said, *(_use(call) for call in calls)]
        case ToolMessage(call=call, content=content, is_error=is_error):
            told = [_part(block, inputs) for block in content]
            return [{"type": "tool_result", "tool_use_id": call, "content": told, "is_error": is_error}]


def _use(call: CallAsked) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.name or "unknown",
        "input": arguments_object(call.arguments),
    }


def _part(block: Content, inputs: Collection[Input]) -> dict[str, Any]:
    if isinstance(block, ImageContent) and "image" in inputs and block.mime_type in _PICTURES:
        source = {"type": "base64", "media_type": block.mime_type, "data": b64encode(block.data).decode()}
        return {"type": "image", "source": source}
    return {"type": "text", "text": text_of((block,)) or "(nothing)"}
