"""What a tool can answer with: text, pictures, sound, and anything else as bytes or a link."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class TextContent:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageContent:
    """A picture, decoded."""

    data: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class AudioContent:
    """A sound, decoded."""

    data: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class BinaryContent:
    """A resource: embedded with its bytes or its text, or a link to one that can be read."""

    uri: str
    kind: Literal["embedded", "link"]
    name: str | None = None
    mime_type: str | None = None
    data: bytes | None = None
    text: str | None = None


Content: TypeAlias = TextContent | ImageContent | AudioContent | BinaryContent


def text_of(content: Iterable[Content]) -> str:
    """All text in `content`, in order; what is no text is named by its kind."""
    return "\n".join(_words(block) for block in content)


def _words(block: Content) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=mime_type):
            return f"[image {mime_type}, {len(data)} bytes]"
        case AudioContent(data=data, mime_type=mime_type):
            return f"[audio {mime_type}, {len(data)} bytes]"
        case BinaryContent(text=str(text)):
            return text
        case BinaryContent(uri=uri, kind="link", name=name):
            return f"[link {name or uri}: {uri}]"
        case BinaryContent(uri=uri, data=data, mime_type=mime_type):
            return f"[resource {uri}, {mime_type or 'unknown type'}, {len(data or b'')} bytes]"
