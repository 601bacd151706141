"""Makes a tool's schema fit for one model provider: what the provider refuses becomes words in a description.

The result never forbids what the schema allows, and what it allows too much is refused before the call, where
arguments are held against the schema as it came. So the meaning stays, whatever a provider can express.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from squidbot.core.domain.schemas import lookup, safe_schema

Provider: TypeAlias = Literal["openai", "anthropic", "gemini"]

_UNIONS = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const")
"""What OpenAI and Anthropic refuse at the top of a schema, though not below."""
_PROPERTY: Mapping[Provider, re.Pattern[str]] = {
    "openai": re.compile(r"[\s\S]+"),
    "anthropic": re.compile(r"[A-Za-z0-9_.-]{1,64}"),
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"),
}
_GEMINI_KNOWS = frozenset(
    {"type", "description", "title", "enum", "items", "properties", "required", "nullable", "format", "anyOf"}
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern", "default"}
)
_DEEPEST = 12
_LONGEST_NOTE = 400


class UnfitSchema(ValueError):
    """A schema that this provider would refuse whatever is done; its tool is left out alone."""


def fit_schema(schema: Mapping[str, Any], provider: Provider) -> dict[str, Any]:
    """`schema` as `provider` takes it. Raises UnfitSchema."""
    safe = safe_schema(schema)
    for name in safe["properties"]:
        if not _PROPERTY[provider].fullmatch(str(name)):
            raise UnfitSchema(f"the parameter {str(name)[:80]!r} has a name that {provider} refuses")
    if provider == "gemini":
        return {**_for_gemini(safe, safe, 0), "type": "object"}
    refused = {key: safe.pop(key) for key in _UNIONS if key in safe}
    return _noted(_without_remote(safe), refused)


def _noted(schema: dict[str, Any], refused: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with what had to go told in its description."""
    if refused:
        told = json.dumps(refused, ensure_ascii=False, default=str)[:_LONGEST_NOTE]
        known = schema.get("description")
        schema["description"] = f"{known} " * isinstance(known, str) + f"(Also required by its schema: {told})"
    return schema


def _without_remote(part: Any) -> Any:
    """The tree without references to other documents, which no provider follows."""
    match part:
        case Mapping():
            return {
                key: _without_remote(value)
                for key, value in part.items()
                if not (key == "$ref" and isinstance(value, str) and not value.startswith("#"))
            }
        case list():
            return [_without_remote(value) for value in part]
        case _:
            return part


def _for_gemini(part: Any, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """One schema in the subset that Gemini reads: no references, no type lists, no unknown keywords."""
    if not isinstance(part, Mapping) or depth > _DEEPEST:
        return {}
    merged = _respelt(_inlined(part, root))
    refused = {key: value for key, value in merged.items() if key not in _GEMINI_KNOWS and not key.startswith("$")}
    for ignorable in ("additionalProperties", "examples", "definitions"):
        refused.pop(ignorable, None)
    kept = {key: value for key, value in merged.items() if key in _GEMINI_KNOWS and value is not None}
    if isinstance(kept.get("properties"), Mapping):
        kept["properties"] = {name: _for_gemini(inner, root, depth + 1) for name, inner in kept["properties"].items()}
    if "items" in kept:
        kept["items"] = _for_gemini(kept["items"], root, depth + 1)
    if isinstance(kept.get("anyOf"), list):
        kept["anyOf"] = [_for_gemini(choice, root, depth + 1) for choice in kept["anyOf"]]
    return _noted(kept, refused)


def _respelt(merged: dict[str, Any]) -> dict[str, Any]:
    """What Gemini can say in other words, in those words."""
    kinds = merged.get("type")
    if isinstance(kinds, list):
        named = [kind for kind in kinds if kind != "null"]
        merged["type"] = named[0] if len(named) == 1 else None
        if len(named) > 1:
            merged["anyOf"] = [{"type": kind} for kind in named]
        if len(named) < len(kinds):
            merged["nullable"] = True
    if "oneOf" in merged and "anyOf" not in merged:
        merged["anyOf"] = merged.pop("oneOf")
    if "const" in merged and "enum" not in merged:
        merged["enum"] = [merged.pop("const")]
    if "enum" in merged and not all(isinstance(value, str) for value in merged["enum"]):
        merged["allowed values"] = merged.pop("enum")
    return merged


def _inlined(part: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(part)
    for _ in range(_DEEPEST):
        reference = merged.pop("$ref", None)
        target = lookup(root, reference) if isinstance(reference, str) and reference.startswith("#") else None
        if target is None:
            break
        merged = {**target, **merged}
    return merged
