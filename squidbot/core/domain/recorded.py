"""What a record keeps of arguments and results: redacted, cut to a size, bytes by their digest."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from squidbot.core.domain.content import AudioContent, BinaryContent, Content, ImageContent, TextContent
from squidbot.core.domain.prompts import RenderedPrompt, ResourceContents
from squidbot.core.domain.redaction import Redactor
from squidbot.core.domain.text import visible
from squidbot.core.domain.tools import ToolResult

LIMIT = 16_384
"""Characters of JSON that a record keeps of the arguments, and of the result."""
_TAIL = 1_024
_LONGEST_MESSAGE = 2_000
_LONGEST_NAME = 256
_MOST_PARTS = 5_000
_MOST_CHARACTERS = 16 * LIMIT
"""Of all strings together: more of them would be looked through for secrets only to be cut away."""
_FEW = 32
_LINE_ENDS = {9: r"\t", 10: r"\n", 13: r"\r"}
_NUMBERS = frozenset({int, float, bool, type(None)})


def stored(value: Any, redactor: Redactor) -> str:
    """A JSON tree as a record keeps it. What is too large is cut, with its size and digest."""
    return _fitting(redactor.json(value if _is_small(value) else _bounded(value, _Room(), redactor)))


def _fitting(text: str) -> str:
    if len(text) <= LIMIT:
        return text
    return json.dumps(_cut(text), ensure_ascii=False, separators=(",", ":"))


def stored_result(result: ToolResult, redactor: Redactor) -> str:
    """What a record keeps of an answer."""
    kept: dict[str, Any] = {"content": [_block(block) for block in result.content[:_MOST_PARTS]]}
    if result.structured is not None:
        kept["structured"] = result.structured
    if result.is_error:
        kept["is_error"] = True
    if result.structured is None and len(result.content) <= _FEW and all(map(_is_short, result.content)):
        return _fitting(redactor.json(kept))
    return stored(kept, redactor)


def without_secrets(result: ToolResult, redactor: Redactor) -> ToolResult:
    """The answer without any secret of the settings, which no server has to tell anybody; usually the same object."""
    if not redactor.knows_any or not _may_tell(result, redactor):
        return result
    content = tuple(_without(block, redactor) for block in result.content)
    structured = known_out(result.structured, redactor)
    raw = known_out(result.raw, redactor)
    failure = result.failure
    if failure is not None and failure.error is not None:
        failure = replace(failure, error=known_out(failure.error, redactor))
    if (content, structured, raw, failure) == (result.content, result.structured, result.raw, result.failure):
        return result
    return replace(result, content=content, structured=structured, raw=raw, failure=failure)


def prompt_without_secrets(rendered: RenderedPrompt, redactor: Redactor) -> RenderedPrompt:
    """A filled prompt without any secret of the settings."""
    if not redactor.knows_any:
        return rendered
    messages = tuple(replace(message, content=_without(message.content, redactor)) for message in rendered.messages)
    return RenderedPrompt(redactor.known(rendered.description), messages, known_out(rendered.raw, redactor))


def contents_without_secrets(read: ResourceContents, redactor: Redactor) -> ResourceContents:
    """What was read, without any secret of the settings."""
    if not redactor.knows_any:
        return read
    content = tuple(_without(block, redactor) for block in read.content)
    return ResourceContents(content, known_out(read.raw, redactor))


def known_out(value: Any, redactor: Redactor) -> Any:
    """A JSON tree without any secret of the settings."""
    match value:
        case str():
            return redactor.known(value)
        case Mapping():
            return {
                redactor.known(key) if isinstance(key, str) else key: known_out(part, redactor)
                for key, part in value.items()
            }
        case list() | tuple():
            return [known_out(part, redactor) for part in value]
        case _:
            return value


def stored_message(text: str, redactor: Redactor) -> str:
    """An error's words as one line of a record."""
    short = redactor.text(text[: 4 * _LONGEST_MESSAGE])
    return visible(short, newlines=False)[:_LONGEST_MESSAGE]


def stored_name(text: str, redactor: Redactor) -> str:
    """A name that somebody gave: seen whole, whatever is in it, but without secrets, and not without end."""
    return _shown(redactor.name(text[: 8 * _LONGEST_NAME]))


@lru_cache(maxsize=4_096)
def _shown(text: str) -> str:
    # Spaces stay as they are: `git_push ` is not `git_push`, and was refused for it.
    shown = visible(text[: 2 * _LONGEST_NAME].translate(_LINE_ENDS))
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}…"


def _block(block: Content) -> dict[str, Any]:
    match block:
        case TextContent(text=text):
            return {"type": "text", "text": text}
        case ImageContent(data=data, mime_type=mime_type):
            return {"type": "image", "mime_type": mime_type, **_digest(data)}
        case AudioContent(data=data, mime_type=mime_type):
            return {"type": "audio", "mime_type": mime_type, **_digest(data)}
        case BinaryContent(data=bytes(data)):
            return {"type": "binary", "uri": block.uri, "mime_type": block.mime_type, **_digest(data)}
        case BinaryContent():
            return {"type": "binary", "uri": block.uri, "mime_type": block.mime_type, "text": block.text}


def _without(block: Content, redactor: Redactor) -> Content:
    match block:
        case TextContent(text=text):
            return TextContent(redactor.known(text))
        case BinaryContent(data=data, text=text):
            return replace(
                block,
                uri=known_out(block.uri, redactor),
                name=known_out(block.name, redactor),
                data=None if data is None else redactor.known_bytes(data),
                text=None if text is None else redactor.known(text),
            )
        case ImageContent(data=data) | AudioContent(data=data):
            return replace(block, data=redactor.known_bytes(data))


def _may_tell(result: ToolResult, redactor: Redactor) -> bool:
    """Whether any secret of the settings may be in the answer; for nearly all this is all that is asked."""
    texts: list[Any] = [result.structured, result.raw, None if result.failure is None else result.failure.error]
    for block in result.content:
        if not isinstance(block, TextContent):
            return True
        texts.append(block.text)
    return redactor.may_know_any_of(texts)


def _is_short(block: Content) -> bool:
    return isinstance(block, TextContent) and len(block.text) <= LIMIT


def _is_small(value: Any) -> bool:
    """Whether it is plain to see that nothing has to be cut: a few words and numbers, as most arguments are."""
    if not isinstance(value, dict) or len(value) > _FEW:
        return False
    for part in value.values():  # not by `all`: this is asked at every call
        kind = type(part)
        if kind is not str:
            if kind not in _NUMBERS:
                return False
        elif len(part) > LIMIT:
            return False
    return True


class _Room:
    """How much of a tree is still looked at."""

    def __init__(self) -> None:
        self.parts, self.characters = _MOST_PARTS, _MOST_CHARACTERS


def _bounded(value: Any, left: _Room, redactor: Redactor) -> Any:
    """The tree with its long strings cut and no more than so many parts: quick to write down, however large it was."""
    left.parts -= 1
    if left.parts < 0 or left.characters < 0:
        return "…"
    match value:
        case str() if len(value) > 4 * LIMIT:
            # Without secrets before it is cut: half of one would not be known again.
            left.characters -= 5 * LIMIT
            return _ends(value, redactor.text(value[: 4 * LIMIT]), redactor.text(value[-LIMIT:]))
        case str():
            left.characters -= len(value)
            return value
        case bytes():
            return _digest(value)
        case Mapping():
            return {str(key): _bounded(part, left, redactor) for key, part in list(value.items())[: max(left.parts, 0)]}
        case list() | tuple():
            return [_bounded(part, left, redactor) for part in value[: max(left.parts, 0)]]
        case _:
            return value


def _cut(text: str) -> dict[str, Any]:
    return _ends(text, text, text)


def _ends(text: str, head: str, tail: str) -> dict[str, Any]:
    raw = text.encode("utf-8", "backslashreplace")
    return {"cut": True, **_digest(raw), "head": head[: LIMIT - 2 * _TAIL], "tail": tail[-_TAIL:]}


def _digest(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
