"""A tool's JSON Schema: made safe for models without changing its meaning, and flattened for simple agents."""

from collections.abc import Mapping
from typing import Any

from squidbot.core.domain.tools import Parameter

_MAX_REFERENCES = 32


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
    if not isinstance(part, Mapping):
        return {}
    merged: dict[str, Any] = dict(part)
    for _ in range(_MAX_REFERENCES):
        reference = merged.pop("$ref", None)
        if not isinstance(reference, str) or not reference.startswith("#"):
            return merged
        target = lookup(root, reference)
        if target is None:
            return merged
        merged = {**target, **merged}
    return merged


def lookup(root: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    """What a local reference points to, nothing if it points nowhere."""
    found: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        if not isinstance(found, Mapping):
            return None
        found = found.get(step.replace("~1", "/").replace("~0", "~"))
    return found if isinstance(found, Mapping) else None


def _type(part: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> str:
    declared = part.get("type")
    if isinstance(declared, str):
        return declared
    if isinstance(declared, list):
        return " | ".join(str(kind) for kind in declared)
    for union in ("anyOf", "oneOf"):
        choices = part.get(union)
        if isinstance(choices, list) and depth < _MAX_REFERENCES:
            kinds = dict.fromkeys(_type(_resolve(choice, root), root, depth + 1) for choice in choices)
            return " | ".join(kinds)
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
