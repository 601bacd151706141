"""Conversations with agents that are kept: one file each, a line for every message, written as it is said."""

import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from squidbot.core.domain.content import AudioContent, Content, ImageContent, TextContent, text_of
from squidbot.core.domain.conversation import CallAsked, Message, ModelMessage, ToolMessage, UserMessage
from squidbot.core.domain.errors import ConfigError
from squidbot.core.domain.tools import ToolId

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(slots=True)
class Session:
    """One conversation, in one role."""

    name: str
    role: str
    file: Path
    messages: list[Message] = field(default_factory=list)

    def keep(self, message: Message) -> None:
        """Add a message, here and on disk. Raises OSError."""
        self.messages.append(message)
        _append(self.file, _line(message))


class Sessions:
    """All conversations of a state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest(self) -> str | None:
        """The conversation that was last spoken in."""
        files = sorted(self._folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime)
        return files[-1].stem if files else None

    def open(self, name: str, *, role: str, must_exist: bool = False) -> Session:
        """The conversation of this name, begun if there is none. Raises ConfigError, OSError."""
        if not NAME.fullmatch(name):
            raise ConfigError(f"{name!r} is no name for a session: letters, digits, '_', '.' and '-', 64 at most.")
        file = self._folder / f"{name}.jsonl"
        if not file.exists():
            if must_exist:
                raise ConfigError(f"There is no session {name!r} to resume.", hint=self._known())
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _append(file, {"session": name, "role": role})
            return Session(name, role, file)
        head, *lines = _lines(file)
        kept_role = str(head.get("role"))
        if kept_role != role:
            # What one role has read is not for another.
            raise ConfigError(
                f"The session {name!r} was held in the role {kept_role!r}, not {role!r}.",
                hint=f"Go on with --role {kept_role}, or begin another session.",
            )
        messages = [message for message in map(_message, lines) if message is not None]
        return Session(name, role, file, messages)

    def _known(self) -> str:
        names = sorted(file.stem for file in self._folder.glob("*.jsonl"))
        return f"There are: {', '.join(names)}." if names else "There is none yet; --session NAME begins one."


def _append(file: Path, document: dict[str, Any]) -> None:
    place = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(place, "a", encoding="ascii") as opened:
        opened.write(json.dumps(document) + "\n")


def _lines(file: Path) -> list[dict[str, Any]]:
    """What can be read of a file; a line that broke off when the machine did is left out."""
    found: list[dict[str, Any]] = []
    for line in file.read_text("ascii", errors="replace").splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict):
            found.append(document)
    return found or [{}]


def _line(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage(text=text):
            return {"user": text}
        case ModelMessage(text=text, calls=calls):
            return {"model": text, "calls": [[call.id, call.name, call.arguments] for call in calls]}
        case ToolMessage():
            return {
                "tool": message.name,
                "call": message.call,
                "content": [_block(block) for block in message.content],
                "is_error": message.is_error,
                "reached": list(message.tool) if message.tool is not None else None,
            }


def _message(line: dict[str, Any]) -> Message | None:
    match line:
        case {"user": str(text)}:
            return UserMessage(text)
        case {"model": str(text), "calls": list(calls)}:
            return ModelMessage(text, tuple(CallAsked(*map(str, call)) for call in calls if len(call) == 3))
        case {"tool": str(name), "call": str(call), "content": list(content)}:
            reached = line.get("reached")
            tool = ToolId(*reached) if isinstance(reached, Sequence) and len(reached) == 2 else None
            blocks = tuple(_content(block) for block in content)
            return ToolMessage(call, name, blocks, is_error=bool(line.get("is_error")), tool=tool)
        case _:
            return None


def _block(block: Content) -> dict[str, Any]:
    match block:
        case ImageContent(data=data, mime_type=kind):
            return {"image": b64encode(data).decode(), "kind": kind}
        case AudioContent(data=data, mime_type=kind):
            return {"audio": b64encode(data).decode(), "kind": kind}
        case _:
            return {"text": text_of((block,))}


def _content(block: Any) -> Content:
    match block:
        case {"image": str(data), "kind": str(kind)}:
            return ImageContent(b64decode(data), kind)
        case {"audio": str(data), "kind": str(kind)}:
            return AudioContent(b64decode(data), kind)
        case {"text": str(text)}:
            return TextContent(text)
        case _:
            return TextContent("(a part of this answer was not kept)")
