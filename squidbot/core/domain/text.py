"""Foreign text made fit for eyes: nothing in it can move a cursor, hide, turn around or forge a line."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
"""All of them that ASCII has, which is all that there can be in most texts."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1: escape sequences start here
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiners, fillers, Mongolian selectors
    "\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f"  # zero-width, line separators, bidi
    "\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"  # fillers, byte order mark, annotations, lone surrogates
    "\U000e0000-\U000e007f]"  # tags: a whole alphabet that nobody sees
    # A joiner is right between two emoji, and one variation selector after a character; more of them carry data.
    f"|(?<![{_EMOJI}\ufe0f])\u200d|\u200d(?![{_EMOJI}])"
    "|(?:(?<=[\ufe00-\ufe0f])|(?<=[\U000e0100-\U000e01ef]))[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
    "|^[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


def visible(text: str, *, newlines: bool = True) -> str:
    r"""`text` with every character that is not seen written out, as in `\x1b`.

    With `newlines` tabs and line ends stay; without, every run of whitespace is one space and the
    whole is one line.
    """
    text = text.replace("\r\n", "\n") if newlines else " ".join(text.split())
    if text.isascii() and _CONTROL.search(text) is None:
        return text
    return _UNSEEN.sub(_written_out, text)


def seen_and_unseen(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of `text` in order, and of each whether it is a character that is not seen, written out."""
    text, at = text.replace("\r\n", "\n"), 0
    for found in _UNSEEN.finditer(text):
        if found.start() > at:
            yield text[at : found.start()], False
        yield _written_out(found), True
        at = found.end()
    if at < len(text):
        yield text[at:], False


def unhidden(text: str, *, newlines: bool = True) -> str:
    """`text` without any character that is not seen: for models, who read what people do not see."""
    text = text.replace("\r\n", "\n").replace("\r", "\n") if newlines else " ".join(text.split())
    before = None
    # What stood apart may be left side by side, and be unseen only then.
    while before != text:
        before, text = text, _UNSEEN.sub("", text)
    return text


def head_and_tail(text: str, limit: int) -> str:
    """`text`, or if it has more than about `limit` characters its two ends with a note of what was left out between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    head = _whole_lines(text[:half], from_start=True)
    tail = _whole_lines(text[len(text) - half :], from_start=False)
    left_out = text[len(head) : len(text) - len(tail)]
    lines = left_out.count("\n")
    return f"{head}\n[... {len(left_out):,} characters, {lines:,} line ends left out ...]\n{tail}"


def paired(text: str) -> str:
    """`text` as UTF-8 can hold it: two halves of a character side by side are that character, one alone is a mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def glimpse(value: Any, limit: int) -> str:
    """The beginning of a JSON value as it would be written, however much there is of it."""
    written = ""
    for part in json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value):
        written += part[: limit + 1]
        if len(written) > limit:
            return f"{written[:limit]}…"
    return written


def blanked(text: str, secrets: Iterable[str]) -> str:
    """`text` with every occurrence of a secret replaced, the longest first, so that no part of one is left."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[hidden]")
    return text


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _whole_lines(part: str, *, from_start: bool) -> str:
    """`part` without the line that the cut went through, unless that would be most of it."""
    at = part.rfind("\n") if from_start else part.find("\n")
    kept = part[: max(at, 0)] if from_start else part[at + 1 :]
    return kept if at >= 0 and len(kept) * 2 >= len(part) else part
