"""What a file holds: its kind by its first bytes and its name, its lines within bounds."""

import codecs
import mimetypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, TypeAlias

ContentKind: TypeAlias = Literal["text", "image", "audio", "binary"]

HEAD = 8_192
# Only the types that Python itself knows: the answer must not depend on what is installed on the machine.
_TYPES = mimetypes.MimeTypes()


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines of a file; `following` is the number of the first one that is not among them."""

    text: str
    first: int
    last: int
    following: int | None
    note: str | None


def mime_type(path: str) -> str | None:
    """What the name promises; None if it promises nothing."""
    guess, encoding = _TYPES.guess_type(path)
    return None if encoding else guess


def kind_of(path: str, head: bytes) -> tuple[ContentKind, str]:
    """What a file is, and its MIME type. The bytes decide whether it is text, the name what else it is."""
    promised = mime_type(path)
    family = promised.partition("/")[0] if promised else ""
    if b"\0" not in head and (family not in {"image", "audio"} or _is_utf8(head)):
        return "text", "text/plain" if promised is None or family in {"audio", "video"} else promised
    if promised and family == "image":
        return "image", promised
    if promised and family == "audio":
        return "audio", promised
    return "binary", promised or "application/octet-stream"


def read_lines(file: BinaryIO, *, offset: int, limit: int, size: int) -> Lines | None:
    """Lines of `file` from number `offset` on, `limit` of them and `size` bytes at most; None past its end."""
    taken: list[bytes] = []
    used = number = 0
    cut = following = None
    for number, (line, whole) in enumerate(bounded_lines(file, size), 1):
        if number < offset:
            continue
        if len(taken) == limit or used + len(line) > size:
            following = number
            break
        taken.append(line)
        used += len(line)
        cut = cut if whole else number
    if not taken and offset > 1:
        return None
    text, notes = b"".join(taken).decode("utf-8", "replace"), []
    if "\ufffd" in text:
        notes.append("bytes that are no UTF-8 are shown as \ufffd")
    if cut:
        notes.append(f"line {cut} is longer than {size} bytes and cut")
    return Lines(text, offset, offset + len(taken) - 1, following, "; ".join(notes) or None)


def bounded_lines(file: BinaryIO, size: int) -> Iterator[tuple[bytes, bool]]:
    """Each line, or the first `size` bytes of it and False, however long the rest is."""
    while line := file.readline(size):
        rest = line
        while len(rest) == size and not rest.endswith(b"\n"):
            rest = file.readline(size)
        yield line, rest is line or not rest


def _is_utf8(head: bytes) -> bool:
    try:
        # Not final: the head may end in the middle of a character.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True
