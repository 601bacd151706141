"""What a server wants to know from a person: a form or a page to visit, or something that nobody is asked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

_SECRET = re.compile(
    r"pass(word|wd|phrase|code)|secret|token|api[\s_-]?key|credential|private[\s_-]?key|\botp\b|\bpin\b|\bcvv\b|\bcvc\b"
    r"|card[\s_-]?number|one[\s_-]?time|2fa|mfa|recovery|seed[\s_-]?phrase|\bssn\b|authorization",
    re.IGNORECASE,
)
_MOST_FIELDS = 20
_LEAST_PIN = 1_000
_YES = frozenset({"y", "yes", "true", "1", "on", "ja"})
_NO = frozenset({"n", "no", "false", "0", "off", "nein"})


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that is asked."""

    name: str
    label: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def choices(self) -> list[str]:
        """What may be chosen, if it is a choice."""
        items = self.schema.get("items") if self.schema.get("type") == "array" else self.schema
        found = items if isinstance(items, Mapping) else {}
        titled = found.get("oneOf") or found.get("anyOf")
        if isinstance(titled, list):
            return [str(option.get("const")) for option in titled if isinstance(option, Mapping)]
        return [str(value) for value in found.get("enum") or ()]


@dataclass(frozen=True, slots=True)
class Form:
    """Fields to fill in."""

    message: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Visit:
    """A page that the person may visit by themselves."""

    message: str
    url: str


@dataclass(frozen=True, slots=True)
class Unaskable:
    """Something that no person is asked, and why."""

    reason: str


Wanted: TypeAlias = Form | Visit | Unaskable


def wanted(params: Mapping[str, Any]) -> Wanted:
    """What a server's `elicitation/create` asks for; total, whatever it sent."""
    message = str(params.get("message") or "")
    if params.get("mode") == "url" or "url" in params:
        return _visit(message, params.get("url"))
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
        return Unaskable("it does not say which fields it asks for")
    if len(properties) > _MOST_FIELDS:
        return Unaskable(f"it asks for {len(properties)} fields at once; {_MOST_FIELDS} are the most")
    required = schema.get("required")
    needed = {str(name) for name in required} if isinstance(required, list) else set()
    fields = tuple(_field(str(name), part, needed) for name, part in properties.items())
    secret = next((field.name for field in fields if _is_secret(field)), None)
    if secret is not None:
        return Unaskable(f"{secret!r} looks like a secret, and secrets are never typed for a server")
    return Form(message, fields)


def value_of(field: Field, text: str) -> Any:
    """What a person typed, as the field's schema has it. Raises ValueError with what would be right."""
    if field.schema.get("type") == "array":
        return [_chosen(field, part.strip()) for part in text.split(",") if part.strip()]
    if field.choices:
        return _chosen(field, text.strip())
    match field.schema.get("type"):
        case "boolean":
            return _truth(text)
        case "integer":
            return _bounded(field, _number(text, int))
        case "number":
            return _bounded(field, _number(text, float))
        case _:
            return _length(field, text)


def _visit(message: str, url: Any) -> Wanted:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return Unaskable("the page that it names is no web page")
    if parts.username is not None or parts.password is not None:
        return Unaskable("the address of its page pretends to be another's")
    return Visit(message, str(url))


def _field(name: str, part: Any, needed: set[str]) -> Field:
    schema = part if isinstance(part, Mapping) else {}
    label = str(schema.get("title") or name)
    if schema.get("description"):
        label = f"{label} ({schema['description']})"
    return Field(name, label, schema, name in needed)


def _is_secret(field: Field) -> bool:
    most = field.schema.get("maximum")
    if field.choices or field.schema.get("type") == "boolean" or (isinstance(most, int | float) and most < _LEAST_PIN):
        return False  # what can only be chosen, or has three digits, hides nothing
    words = f"{field.name} {field.label} {field.schema.get('format', '')}"
    # `apiKey` and `api_key` are the same words.
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", words)
    return bool(_SECRET.search(words) or _SECRET.search(spaced) or field.schema.get("writeOnly") is True)


def _chosen(field: Field, text: str) -> str:
    choices = field.choices
    if text in choices or not choices:
        return text
    if text.isdecimal() and 1 <= int(text) <= len(choices):
        return choices[int(text) - 1]
    raise ValueError(f"one of {', '.join(choices)}")


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word in _YES | _NO:
        return word in _YES
    raise ValueError("yes or no")


def _number(text: str, kind: type[int] | type[float]) -> float:
    try:
        value = kind(text.strip())
    except ValueError:
        raise ValueError("a whole number" if kind is int else "a number") from None
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - what is not a number is not itself
        raise ValueError("a number")
    return value


def _bounded(field: Field, value: float) -> float:
    low, high = field.schema.get("minimum"), field.schema.get("maximum")
    if isinstance(low, int | float) and value < low:
        raise ValueError(f"at least {low}")
    if isinstance(high, int | float) and value > high:
        raise ValueError(f"at most {high}")
    return value


def _length(field: Field, text: str) -> str:
    low, high = field.schema.get("minLength"), field.schema.get("maxLength")
    if isinstance(low, int) and len(text) < low:
        raise ValueError(f"at least {low} characters")
    if isinstance(high, int) and len(text) > high:
        raise ValueError(f"at most {high} characters")
    return text
