"""OpenAI's chat completions on the wire: a conversation as they read it, and a turn gathered from its pieces."""

import json
from base64 import b64encode
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from squidbot.adapters.models.definition import Input
from squidbot.core.domain.content import AudioContent, Content, ImageContent, TextContent, text_of
from squidbot.core.domain.conversation import (
    CallAsked,
    Message,
    ModelMessage,
    ModelStop,
    ModelTool,
    ToolMessage,
    UserMessage,
)
from squidbot.core.domain.text import paired

_STOPS: dict[str, ModelStop] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refused",
}


def openai_tool(tool: ModelTool) -> dict[str, Any]:
    """A tool as it is offered."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def openai_messages(messages: Sequence[Message], *, system: str, inputs: Collection[Input]) -> list[dict[str, Any]]:
    """The conversation. Pictures of tools follow their answers in a message of their own, since answers are text."""
    written: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    waiting: list[dict[str, Any]] = []
    for message in messages:
        if waiting and not isinstance(message, ToolMessage):
            written.append({"role": "user", "content": waiting})
            waiting = []
        match message:
            case UserMessage(text=text):
                written.append({"role": "user", "content": text})
            case ModelMessage():
                written.append(_said(message))
            case ToolMessage(call=call, content=content):
                seen = [block for block in content if _kind(block) in inputs]
                words = text_of(block for block in content if block not in seen)
                written.append({"role": "tool", "tool_call_id": call, "content": words})
                if seen:
                    waiting.append({"type": "text", "text": f"What the tool {message.name!r} answered with (data):"})
                    waiting += [_part(block) for block in seen]
    if waiting:
        written.append({"role": "user", "content": waiting})
    return written


def arguments_object(text: str) -> dict[str, Any]:
    """A call's arguments as an object, whatever the model wrote: some servers read them again and fail on less."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"malformed": text[:1_000]}


def sendable(part: Any) -> Any:
    """A part of a request, all of whose words can be sent: models, people and settings write half characters, too."""
    match part:
        case str():
            return paired(part)
        case dict():
            return {sendable(key): sendable(value) for key, value in part.items()}
        case list():
            return [sendable(value) for value in part]
        case _:
            return part


@dataclass(slots=True)
class Gathering:
    """A turn as it comes, piece by piece."""

    stop: ModelStop | None = None
    usage: tuple[int, int, float | None] | None = None
    _calls: list[dict[str, str]] = field(default_factory=list)
    _at: dict[int, int] = field(default_factory=dict)

    def take(self, chunk: Any) -> Iterator[str]:
        """One piece; its words, if it has any."""
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            cost = (getattr(usage, "model_extra", None) or {}).get("cost")
            counts = (usage.prompt_tokens or 0, usage.completion_tokens or 0)
            self.usage = (*counts, float(cost) if isinstance(cost, int | float) else None)
        for choice in (chunk.choices or [])[:1]:
            delta = choice.delta
            if delta is not None:
                for text in (delta.content, getattr(delta, "refusal", None)):
                    if text:
                        yield text
                for piece in delta.tool_calls or []:
                    self._add(piece)
            if choice.finish_reason:
                self.stop = _STOPS.get(choice.finish_reason, "end")

    def calls(self) -> Iterator[CallAsked]:
        """The calls, whole."""
        for call in self._calls:
            yield CallAsked(call["id"], call["name"], call["arguments"])

    def _add(self, piece: Any) -> None:
        index = piece.index or 0
        known = self._at.get(index)
        # Some servers give every call the index 0, and only its id tells that it is another.
        if known is None or (piece.id and self._calls[known]["id"] and piece.id != self._calls[known]["id"]):
            known = self._at[index] = len(self._calls)
            self._calls.append({"id": "", "name": "", "arguments": ""})
        call = self._calls[known]
        call["id"] = call["id"] or piece.id or ""
        if piece.function is not None:
            call["name"] += piece.function.name or ""
            call["arguments"] += piece.function.arguments or ""


def _said(message: ModelMessage) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.calls:
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name or "unknown", "arguments": json.dumps(arguments_object(call.arguments))},
            }
            for call in message.calls
        ]
    return said


def _kind(block: Content) -> str:
    return "image" if isinstance(block, ImageContent) else "audio" if isinstance(block, AudioContent) else "text"


def _part(block: Content) -> dict[str, Any]:
    match block:
        case ImageContent(data=data, mime_type=kind):
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{b64encode(data).decode()}"}}
        case AudioContent(data=data, mime_type=kind):
            form = {"audio/mpeg": "mp3", "audio/mp3": "mp3"}.get(kind, "wav")
            return {"type": "input_audio", "input_audio": {"data": b64encode(data).decode(), "format": form}}
        case _:
            return {"type": "text", "text": text_of((block,)) if not isinstance(block, TextContent) else block.text}
