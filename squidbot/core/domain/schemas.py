"""A tool's JSON Schema: made safe for models without changing its meaning, and flattened for simple agents."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from squidbot.core.domain.tools import Parameter

_MAX_REFERENCES = 32
_MAX_ALTERNATIVES = 64


def safe_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` as it came, with `type: object` and `properties` present, as every provider demands."""
    safe = dict(schema)
    safe["type"] = "object"
    if not isinstance(safe.get("properties"), Mapping):
        safe["properties"] = {}
    return safe


def flat_parameters(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The schema's top-level properties as a list, in the order in which the server wrote them."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ()
    wanted = schema.get("required")
    required = set(wanted) if isinstance(wanted, list) and all(isinstance(name, str) for name in wanted) else set()
    return tuple(_parameter(str(name), part, str(name) in required, schema) for name, part in properties.items())


def _parameter(name: str, part: Any, required: bool, root: Mapping[str, Any]) -> Parameter:
    resolved = _resolve(part, root)
    enum = resolved.get("enum")
    if enum is None and "const" in resolved:
        enum = [resolved["const"]]
    description = resolved.get("description")
    return Parameter(
        name=name,
        type=_type(resolved, root),
        description=description if isinstance(description, str) else "",
        required=required,
        default=resolved.get("default"),
        enum=tuple(enum) if isinstance(enum, list) else None,
    )


def _resolve(part: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow local references; what the reference's own place says (a description, a default) wins."""
    merged: dict[str, Any] = dict(part) if isinstance(part, Mapping) else {}
    for _ in range(_MAX_REFERENCES):
        target: Any
        match merged:
            case {"$ref": str(reference)} if reference.startswith("#"):
                target = lookup(root, merged.pop("$ref"))
            case {"allOf": [target]}:
                # The older way to write a reference with a description of its own.
                del merged["allOf"]
            case _:
                break
        merged = {**target, **merged} if isinstance(target, Mapping) else merged
    return merged


def lookup(root: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    """The part of `root` that a local reference (`#/$defs/name`) points to, if it is there and is a schema."""
    found: Any = root
    for step in unquote(reference).removeprefix("#").split("/")[1:]:
        match found:
            case Mapping():
                found = found.get(step.replace("~1", "/").replace("~0", "~"))
            case list() if step.isascii() and step.isdecimal() and len(step) < 9 and int(step) < len(found):
                found = found[int(step)]
            case _:
                return None
    return found if isinstance(found, Mapping) else None


def _type(part: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """The types that `part` allows. A budget ends it, for alternatives may lead back to themselves, twice each time."""
    kinds: dict[str, None] = {}
    waiting: list[Any] = [part]
    for _ in range(_MAX_ALTERNATIVES):
        if not waiting:
            break
        current = _resolve(waiting.pop(0), root)
        declared = _declared(current)
        alternatives = current.get("anyOf") or current.get("oneOf")
        if not declared and isinstance(alternatives, list):
            waiting[:0] = alternatives[:_MAX_ALTERNATIVES]
        else:
            kinds.update(dict.fromkeys(declared or [_implied(current)]))
    return " | ".join(kinds) or "any"


def _declared(part: Mapping[str, Any]) -> list[str]:
    match part.get("type"):
        case str(kind):
            return [kind]
        case list(kinds):
            return [str(kind) for kind in kinds]
        case _:
            return []


def _implied(part: Mapping[str, Any]) -> str:
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if isinstance(values, list) and values:
        return " | ".join(dict.fromkeys(_type_of(value) for value in values))
    return "object" if "properties" in part else "any"


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
