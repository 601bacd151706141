"""Shows what a tool, a prompt or a resource answered: words as words, pictures and the like as files."""

import json
import mimetypes
import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from squidbot.cli.output import Output
from squidbot.core.domain.content import AudioContent, BinaryContent, Content, ImageContent, TextContent
from squidbot.core.domain.text import head_and_tail, visible
from squidbot.core.domain.tools import ToolResult

MOST_ON_A_TERMINAL = 20_000
"""Characters of one text; more is no reading matter, and scrolls away what was asked."""

_SUFFIXES = {"audio/wav": ".wav", "audio/ogg": ".ogg", "audio/flac": ".flac", "image/webp": ".webp"}
"""What Python does not know everywhere."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


class Answers:
    """Prints answers, and keeps in a folder what a terminal cannot show."""

    def __init__(self, output: Output, *, folder: Path, name: str) -> None:
        self.output = output
        self.folder = folder
        self.name = _UNSAFE.sub("-", name)[:64] or "result"

    def show_result(self, result: ToolResult) -> None:
        """A tool's whole answer; structured content only where the words do not say the same already."""
        words = [block.text for block in result.content if isinstance(block, TextContent)]
        if result.structured is None or (words and not _says(words, result.structured)):
            self.show(result.content)
        else:
            self.output.json_text(result.structured)
            self.show(block for block in result.content if not isinstance(block, TextContent))

    def show(self, content: Iterable[Content]) -> None:
        """Blocks of content, in order."""
        for block in content:
            match block:
                case TextContent(text=text) | BinaryContent(text=str(text)):
                    self._show_text(text)
                case ImageContent(data=data, mime_type=mime_type):
                    self._show_file("image", data, mime_type)
                case AudioContent(data=data, mime_type=mime_type):
                    self._show_file("audio", data, mime_type)
                case BinaryContent(data=bytes(data), mime_type=mime_type):
                    self._show_file(block.uri, data, mime_type)
                case BinaryContent(uri=uri, name=name):
                    self.output.write(self.output.clean(f"[link to {name or uri}: {uri}]", newlines=False))

    def _show_text(self, text: str) -> None:
        if not self.output.on_terminal:
            self.output.write(text)
            return
        shown = head_and_tail(text, MOST_ON_A_TERMINAL)
        self.output.write(visible(shown))
        if shown != text:
            path = self._keep(text.encode("utf-8", "backslashreplace"), ".txt")
            self.output.note(f"The whole text, {len(text):,} characters, is in {path}")

    def _show_file(self, what: str, data: bytes, mime_type: str | None) -> None:
        kind = mime_type or "unknown type"
        bare = kind.partition(";")[0].strip().lower()
        path = self._keep(data, _SUFFIXES.get(bare) or mimetypes.guess_extension(bare) or ".bin")
        self.output.write(visible(f"[{what}, {kind}, {len(data):,} bytes: {path}]", newlines=False))

    def _keep(self, data: bytes, suffix: str) -> Path:
        """A new file of its own, readable by its owner alone: an answer may hold anything."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
        for number in range(1, 10_000):
            path = self.folder / f"{self.name}-{stamp}-{number}{suffix}"
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            return path
        raise FileExistsError(f"{self.folder} has no free name for another result of {self.name!r}")


def _says(words: list[str], structured: Any) -> bool:
    """Whether the words are the structured content again, spelt as JSON, as servers do for older clients."""
    try:
        spelt = [json.loads(text) for text in words]
    except (ValueError, RecursionError):
        return False
    return structured in (spelt[0], {"result": spelt[0]}, {"result": spelt})
