"""Tells the schemas that cannot do harm, whoever wrote them, from those that need a process that can be killed.

A schema is plain if it is well-formed and made of nothing but the keywords below: no expressions, nothing that looks
at a value twice, and references only to definitions of its own that do not lead back to themselves. Then the work of a check
is at most its *width*, how many of its parts can meet in one part of a value, times the *weight* of the value. Both are
known beforehand, which is the whole proof. Most schemas that people's tools write are plain.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

MOST_WORK = 1_000
"""Width times weight of what is checked in the event loop: a few milliseconds, fifteen at the worst that was found."""

_PARTS = 5_000
_DEPTH = 32
_CHARACTERS = 64
"""As many characters of a value weigh as much as one part of it: messages show them."""

_DIALECTS = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-07/schema#",
    }
)
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_REFERENCE = re.compile(r"#/(\$defs|definitions)/([\w.-]+)", re.ASCII)


def width(schema: Mapping[str, Any]) -> int | None:
    """How many parts of `schema` can meet in one part of a value; None if it is not plain."""
    root = dict(schema)
    try:
        return _Walk(root).width(root, 0)
    except _NotPlain:
        return None


def is_light(value: Any, most: int) -> bool:
    """Whether a value weighs no more than `most`. Stops counting as soon as it does."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        most -= 1
        match part:
            case str():
                most -= len(part) // _CHARACTERS
            case dict() if len(part) <= most:
                most -= sum(len(name) for name in part if isinstance(name, str)) // _CHARACTERS
                waiting.extend(part.values())
            case list() if len(part) <= most:
                waiting.extend(part)
            case dict() | list():
                return False
            case int():
                most -= part.bit_length() // (8 * _CHARACTERS)
        if most < 0:
            return False
    return True


class _NotPlain(Exception):
    """Something in a schema is not known to be harmless."""


class _Walk:
    """One look at every part of a schema, through its references, as far as there is an end to it."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = _PARTS

    def width(self, schema: Any, depth: int) -> int:
        """By induction: in a part of a value meet this schema and those beside it, or one below it and those beside."""
        if isinstance(schema, bool):
            return 1
        if not isinstance(schema, dict):
            raise _NotPlain
        beside, below = 0, self._own(schema)
        if self._left < 0 or depth > _DEPTH:
            raise _NotPlain
        for keyword, limit in schema.items():
            match keyword:
                case "allOf" | "anyOf" if isinstance(limit, list) and limit:
                    beside += sum(self.width(part, depth + 1) for part in limit)
                case "$ref":
                    beside += 1 + self.width(self._referred(limit), depth + 1)
                case "properties" | "$defs" | "definitions" if isinstance(limit, dict):
                    widths = [self.width(part, depth + 1) for part in limit.values()]
                    below = max([below, *widths]) if keyword == "properties" else below
                case "prefixItems" if isinstance(limit, list) and limit:
                    below = max(below, *(self.width(part, depth + 1) for part in limit))
                case "items" | "additionalProperties":
                    below = max(below, self.width(limit, depth + 1))
                case _:
                    self._see(keyword, limit)
        return beside + below

    def _own(self, schema: dict[str, Any]) -> int:
        """What a schema costs by itself, in parts: long lists are gone through, unknown names compared with known ones."""
        named, listed = _length(schema.get("properties")), _length(schema.get("required")) + _length(schema.get("enum"))
        self._left -= 1 + len(schema) + listed
        return 1 + (named + listed) // 16 + (named if schema.get("additionalProperties") is False else 0)

    def _referred(self, reference: Any) -> Any:
        found = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
        definitions = self._root.get(found[1]) if found else None
        if found is None or not isinstance(definitions, dict) or found[2] not in definitions:
            raise _NotPlain
        return definitions[found[2]]

    def _see(self, keyword: str, limit: Any) -> None:
        harmless = _HARMLESS.get(keyword)
        if not (harmless(limit) if harmless else str(keyword).startswith("x-")):
            raise _NotPlain


def _length(limit: Any) -> int:
    return len(limit) if isinstance(limit, (dict, list)) else 0


def _is_anything(limit: Any) -> bool:
    del limit
    return True


def _is_text(limit: Any) -> bool:
    return isinstance(limit, str)


def _is_flag(limit: Any) -> bool:
    return isinstance(limit, bool)


def _is_number(limit: Any) -> bool:
    return isinstance(limit, (int, float)) and not isinstance(limit, bool)


def _is_positive(limit: Any) -> bool:
    return _is_number(limit) and limit > 0


def _is_count(limit: Any) -> bool:
    return isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0


def _is_list(limit: Any) -> bool:
    return isinstance(limit, list)


def _is_scalar(limit: Any) -> bool:
    return limit is None or isinstance(limit, (str, int, float))


def _is_choice(limit: Any) -> bool:
    return isinstance(limit, list) and all(map(_is_scalar, limit))


def _is_names(limit: Any) -> bool:
    return isinstance(limit, list) and all(map(_is_text, limit)) and len(set(limit)) == len(limit)


def _is_type(limit: Any) -> bool:
    if isinstance(limit, str):
        return limit in _TYPES
    return _is_names(limit) and bool(limit) and _TYPES.issuperset(limit)


def _is_dialect(limit: Any) -> bool:
    return isinstance(limit, str) and limit in _DIALECTS


_HARMLESS: Mapping[str, Callable[[Any], bool]] = {
    "$schema": _is_dialect,
    "type": _is_type,
    "enum": _is_choice,
    "const": _is_scalar,
    "required": _is_names,
    "multipleOf": _is_positive,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("title", "description", "$comment", "format", "contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("readOnly", "writeOnly", "deprecated"), _is_flag),
    "default": _is_anything,
    "examples": _is_list,
}
"""Keywords that apply no other schema, each with what a well-formed limit of it is."""
