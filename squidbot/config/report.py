"""Turns what pydantic found into problems that people can read: where, what was found, what is allowed."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from squidbot.config.jsonc import Location
from squidbot.config.secrets import is_secret_name
from squidbot.config.variables import join_path
from squidbot.core.domain.errors import Problem

_SHOWN_LENGTH = 40
_PRIVATE_PLACES = frozenset({"env", "headers", "auth", "args", "config", "url", "redis", "webhook", "command"})
"""Parts of the settings in which any value may be a secret, whatever its name."""
_EXPECTED = {
    "string_type": "a string",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "finite_number": "a finite number",
    "int_parsing_size": "a smaller number",
    "string_unicode": "valid Unicode text",
    "none_required": "null",
}
_PLACED_ELSEWHERE = {
    "mcpservers": "tools.mcp_servers",
    "mcpserver": "tools.mcp_servers",
    "servers": "tools.mcp_servers",
    "server": "tools.mcp_servers",
    "mcp": "tools.mcp_servers",
    "contextservers": "tools.mcp_servers",
    "defaulttimeout": "tools.default_timeout",
    "maxretries": "tools.max_retries",
    "apikey": "model.api_key",
    "oidc": "gateway.oidc",
}
"""By the letters of a key alone: what stands at the top in other tools' files, or is put there by mistake."""


def problems_of(
    error: ValidationError,
    model: type[BaseModel],
    *,
    at: str = "",
    show_values: bool = True,
    lines: Mapping[Location, int] | None = None,
) -> list[Problem]:
    """Every error as a problem; `lines` says on which line of its file a place is, where that is known."""
    schema = model.model_json_schema()
    problems: dict[Problem, int] = {}
    for entry in error.errors(include_url=False):
        place = tuple(step for step in entry["loc"] if step != "[key]")
        message, hint = _words(entry, place, schema=schema, show_values=show_values)
        line = _line(lines or {}, place)
        if hint and not hint.endswith((".", "?")):
            hint += "."
        problems[Problem(join_path(at, *place), f"{message} (line {line})" if line else message, hint)] = line or 0
    return sorted(problems, key=lambda problem: problems[problem])  # a file is mended from top to bottom


def found(value: Any, place: Location = ()) -> str:
    """A value in a few words: its kind, and itself only if it is short and stands where no secret can."""
    kind = kind_of(value)
    private = any(isinstance(step, str) and (step in _PRIVATE_PLACES or is_secret_name(step)) for step in place)
    if private or value is None or isinstance(value, Mapping | list | tuple):
        return kind
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if abs(value) < 10**15 else kind
    if isinstance(value, str) and len(value) <= _SHOWN_LENGTH and not looks_secret(value):
        return repr(value)
    return kind


def kind_of(value: Any) -> str:
    """What JSON calls the kind of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string" if value else "an empty string"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to a wrong one, as a question."""
    lowered = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower()[:100], lowered, n=1, cutoff=0.6)
    return f"Did you mean {lowered[near[0]]!r}?" if near else None


def looks_secret(text: str) -> bool:
    """A long unbroken run of letters and digits is more likely a key than a slip of the pen."""
    return re.search(r"(?=\S*\d)(?=\S*[A-Za-z])[A-Za-z0-9_\-+/=]{16,}|://[^/]*@", text) is not None


def _words(entry: Any, place: Location, *, schema: Mapping[str, Any], show_values: bool) -> tuple[str, str | None]:
    """The message and the hint for one error."""
    kind, context = entry["type"], entry.get("ctx", {})
    value = found(entry["input"], place) if show_values else kind_of(entry["input"])
    if entry["loc"] and entry["loc"][-1] == "[key]" and kind != "rule":
        return _bad_name(place)
    if place[-2:-1] == ("when",) and kind in ("list_type", "too_short"):
        return f"found {value if kind == 'list_type' else 'an empty list'}; expected a list of globs", _GLOBS
    if place[-1:] == ("when",) and kind == "dict_type":
        return f"found {value}; expected an object, with a list of globs for each argument", _GLOBS
    match kind:
        case "rule":
            return str(context["text"]), context["hint"]
        case "extra_forbidden":
            return _unknown_key(place, schema)
        case "missing":
            return "is missing, and must be given", None
        case "literal_error" if show_values and isinstance(entry["input"], str):
            near = did_you_mean(entry["input"], re.findall(r"'([^']*)'", context["expected"]))
            return f"found {value}; allowed: {context['expected']}", near
        case _:
            return f"found {value}; {_expectation(kind, context, str(entry['msg']))}", None


_PATTERNS: Mapping[str, str] = {
    r"^[1-9][0-9]{0,8}/(s|m|h|d)$": "expected so many per second, minute, hour or day, such as '3000/m'",
    r"^[1-9][0-9]{0,5}(h|d|w|y)$": "expected hours, days, weeks or years, such as '90d'",
}
"""What a pattern of the settings means, for those who do not read patterns."""


def _expectation(kind: str, context: Mapping[str, Any], otherwise: str) -> str:
    """What would have been right, for the rules that a single value can break."""
    match kind, context:
        case _, {"expected": expected}:
            return f"allowed: {expected}"
        case "greater_than", {"gt": limit}:
            return f"expected more than {limit:g}"
        case "greater_than_equal", {"ge": limit}:
            return f"expected at least {limit:g}"
        case "less_than_equal", {"le": limit}:
            return f"expected at most {limit:g}"
        case "string_pattern_mismatch", {"pattern": pattern}:
            return _PATTERNS.get(pattern, f"it must match {pattern}")
        case "string_too_short", _:
            return "it must not be empty"
        case _:
            return f"expected {_EXPECTED[kind]}" if kind in _EXPECTED else f"{otherwise[:1].lower()}{otherwise[1:]}"


_GLOBS = "Write it like {'branch': ['feature/*']}; without a condition leave 'when' out"
"""How a condition on arguments is written."""


def _bad_name(place: Location) -> tuple[str, str]:
    if place[-2:-1] == ("when",):
        return f"{str(place[-1])[:80]!r} is no name of an argument", _GLOBS
    return (
        f"{str(place[-1])[:80]!r} is no name for a server",
        "A name starts with a letter or digit and has up to 64 of letters, digits, '_', '.', '-'",
    )


def _unknown_key(place: Location, schema: Mapping[str, Any]) -> tuple[str, str]:
    key = str(place[-1])
    known = _keys_at(schema, place[:-1])
    if len(place) == 1 and "tools" in known:
        elsewhere = _PLACED_ELSEWHERE.get(re.sub(r"[^a-z]", "", key.lower()))
        if elsewhere is not None:
            return "unknown key", f"Here it is called {elsewhere!r}"
    return "unknown key", did_you_mean(key, known) or f"Known here: {', '.join(known)}"


def _keys_at(schema: Mapping[str, Any], place: Location) -> Sequence[str]:
    """The keys that the model knows at a place, found in its JSON Schema."""
    node: Any = _target(schema, schema)
    for step in place:
        if isinstance(step, int):
            node = _target(node.get("items", {}), schema)
        else:
            named = node.get("properties", {}).get(step)
            others = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
            node = _target(named or next((other for other in others if other), {}), schema)
    return list(node.get("properties", {}))


def _target(node: Any, root: Mapping[str, Any]) -> Any:
    """A node of a schema with its reference followed, or the one that is an object or a list of several."""
    while isinstance(node, Mapping):
        if "$ref" in node:
            node = root["$defs"][node["$ref"].rpartition("/")[2]]
        elif "anyOf" in node:
            node = next(
                (part for part in node["anyOf"] if "$ref" in part or part.get("type") in {"object", "array"}), {}
            )
        else:
            return node
    return {}


def _line(lines: Mapping[Location, int], place: Location) -> int | None:
    """The line of a place, or of the nearest one around it: a key that is missing has no line of its own."""
    for length in range(len(place), 0, -1):
        if place[:length] in lines:
            return lines[place[:length]]
    return None
