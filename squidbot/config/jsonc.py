"""JSON as people write it: comments and trailing commas are allowed, keys said twice are not, and places are known."""

import re
from dataclasses import dataclass, field
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any, TypeAlias

Location: TypeAlias = tuple[str | int, ...]

MAX_DEPTH = 100
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9A-Za-z_.])")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_WORDS = {"true": True, "false": False, "null": None}
_MAX_DIGITS = 400


class JSONSyntaxError(ValueError):
    """The text is no JSON, from `offset` on."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Span:
    """Where a value is: from its key, if it has one, over itself to the comma behind it, if there is one."""

    key: int
    start: int
    end: int
    comma: int | None


@dataclass(slots=True)
class JSONText:
    """A text, its value and where each part of it stands."""

    text: str
    value: Any = None
    spans: dict[Location, Span] = field(default_factory=dict)


def parse_jsonc(text: str) -> JSONText:
    """Read a whole document. Raises JSONSyntaxError."""
    document = JSONText(text)
    reader = _Reader(document)
    start = reader.skip(0)
    document.value, end = reader.value(start, ())
    document.spans[()] = Span(start, start, end, None)
    if reader.skip(end) != len(text):
        raise JSONSyntaxError("something follows the end of the document", reader.skip(end))
    return document


class _Reader:
    """Recursive descent; each method takes the offset at which something starts and returns where it ends."""

    def __init__(self, document: JSONText) -> None:
        self.text = document.text
        self.spans = document.spans

    def skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        end = match.end() if match else at
        if self.text.startswith("/*", end):
            raise JSONSyntaxError("a comment that starts with '/*' is never closed", end)
        return end

    def value(self, at: int, place: Location) -> tuple[Any, int]:
        if len(place) > MAX_DEPTH:
            raise JSONSyntaxError(f"nested deeper than {MAX_DEPTH} levels", at)
        match self.text[at : at + 1]:
            case "{":
                return self._object(at, place)
            case "[":
                return self._array(at, place)
            case '"':
                return self._string(at)
            case "":
                raise JSONSyntaxError("the document ends in the middle", at)
            case _:
                return self._bare(at)

    def _object(self, at: int, place: Location) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        at = self.skip(at + 1)
        while not self.text.startswith("}", at):
            key_at = at
            if not self.text.startswith('"', at):
                raise JSONSyntaxError(_wanted_key(self.text[at : at + 1]), at)
            key, at = self._string(at)
            if key in members:
                raise JSONSyntaxError(f"the key {key[:60]!r} appears twice", key_at)
            at = self.skip(at)
            if not self.text.startswith(":", at):
                raise JSONSyntaxError(f"a ':' is missing after the key {key[:60]!r}", at)
            members[key], at = self._member((*place, key), key_at, self.skip(at + 1), closing="}")
        return members, at + 1

    def _array(self, at: int, place: Location) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self.skip(at + 1)
        while not self.text.startswith("]", at):
            item, at = self._member((*place, len(items)), at, at, closing="]")
            items.append(item)
        return items, at + 1

    def _member(self, place: Location, key_at: int, at: int, *, closing: str) -> tuple[Any, int]:
        """One member and the comma behind it; only the last one may go without."""
        value, end = self.value(at, place)
        following = self.skip(end)
        comma = following if self.text.startswith(",", following) else None
        self.spans[place] = Span(key_at, at, end, comma)
        if comma is None and not self.text.startswith(closing, following):
            if following == len(self.text):
                raise JSONSyntaxError(f"the document ends before its {closing!r}", following)
            # People look for the fault where the comma should have been, not on the line below it.
            raise JSONSyntaxError(f"a ',' or {closing!r} is missing", end)
        return value, following if comma is None else self.skip(comma + 1)

    def _string(self, at: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self.text, at + 1)
        except JSONDecodeError as error:
            raise JSONSyntaxError(f"{error.msg[:1].lower()}{error.msg[1:]}".removesuffix(" at"), error.pos) from None
        if not str(value).isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise JSONSyntaxError("half of a character (a lone surrogate) in a string", at)
        return str(value), int(end)

    def _bare(self, at: int) -> tuple[Any, int]:
        if number := _NUMBER.match(self.text, at):
            if len(number[0]) > _MAX_DIGITS:
                raise JSONSyntaxError("a number of too many digits", at)
            return (float if number[1] or number[2] else int)(number[0]), number.end()
        word = _WORD.match(self.text, at)
        if word and word[0] in _WORDS:
            return _WORDS[word[0]], word.end()
        if word:
            raise JSONSyntaxError(f"{word[0][:40]!r} is no value; text stands in double quotes", at)
        raise JSONSyntaxError(f"a value is missing before {self.text[at]!r}", at)


def _wanted_key(found: str) -> str:
    if found == "'":
        return "a key stands in double quotes"
    return "the document ends in the middle" if not found else "a key in double quotes is missing here"
