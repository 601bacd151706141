"""A quick yes for values that certainly fit: most calls of most tools, which need no library and no list of problems.

Only the commonest keywords are understood. Where a schema says anything else, or a value is not obviously right, there is
no answer here, and the whole check is made. The work is at most `_MOST` for each part of the schema, whatever the value is.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Fits: TypeAlias = Callable[[Any], bool]

_MOST = 1_000
"""Entries of one object or list that are looked at."""
_SAYS_NOTHING = frozenset(
    {"$schema", "title", "description", "default", "examples", "$comment", "readOnly", "writeOnly", "deprecated"}
)
_OF_TYPE: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def quick_fit(schema: Any) -> Fits | None:
    """What says yes to values that certainly fit a plain schema; None for a schema that says more than is understood."""
    if not isinstance(schema, Mapping):
        return None
    said = {keyword for keyword in schema if keyword not in _SAYS_NOTHING}
    match schema.get("type"):
        case "object" if said <= {"type", "properties", "required", "additionalProperties"}:
            return _object(schema)
        case "array" if said <= {"type", "items"}:
            return _array(schema)
        case "string" if said == {"type", "enum"} and all(isinstance(choice, str) for choice in schema["enum"]):
            choices = frozenset(schema["enum"])
            return lambda value: type(value) is str and value in choices
        case str(name) if said == {"type"} and name in _OF_TYPE:
            types = frozenset(_OF_TYPE[name])  # exactly these: True is no integer, and 1.0 is a longer story
            return lambda value: type(value) in types
        case list(names) if said == {"type"} and all(isinstance(name, str) and name in _OF_TYPE for name in names):
            union = frozenset(kind for name in names for kind in _OF_TYPE[name])
            return lambda value: type(value) in union
        case None if not said:
            return lambda _value: True
        case _:
            return None


def _object(schema: Mapping[str, Any]) -> Fits | None:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    closed = schema.get("additionalProperties") is False
    if not closed and schema.get("additionalProperties", True) is not True:
        return None
    parts: dict[str, Fits] = {}
    for name, part in properties.items():
        fits = quick_fit(part)
        if fits is None:
            return None
        parts[name] = fits
    needed = frozenset(required)

    def fit(value: Any) -> bool:
        if type(value) is not dict or len(value) > _MOST or not needed <= value.keys():
            return False
        for name, item in value.items():
            fits = parts.get(name)
            if fits is None:
                if closed:
                    return False
            elif not fits(item):
                return False
        return True

    return fit


def _array(schema: Mapping[str, Any]) -> Fits | None:
    items = schema.get("items", {})
    fits = quick_fit(items)
    if fits is None or items.get("type") in ("object", "array"):
        return None
    return lambda value: type(value) is list and len(value) <= _MOST and all(map(fits, value))
