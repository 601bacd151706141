"""A form from a tool's flat parameters, and arguments from the form that comes back."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from squidbot.core.domain.errors import InvalidArguments, Problem
from squidbot.core.domain.tools import Parameter

FieldKind: TypeAlias = Literal["text", "number", "json", "choice"]
_PREFIX = "arg."
_LONG_WORDS = ("body", "content", "description", "message", "text", "comment", "patch", "diff")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the form."""

    id: str
    name: str
    label: str
    kind: FieldKind
    required: bool
    hint: str
    value: str
    options: tuple[str, ...] = ()
    rows: int = 1


def fields_of(parameters: Sequence[Parameter], sent: Mapping[str, str]) -> tuple[Field, ...]:
    """The form, filled with what was sent before."""
    return tuple(_field(number, parameter, sent) for number, parameter in enumerate(parameters))


def arguments_of(parameters: Sequence[Parameter], sent: Mapping[str, str]) -> dict[str, Any]:
    """What the fields say, each in its type; what was left empty is left out. Raises InvalidArguments."""
    arguments, problems = {}, []
    for parameter in parameters:
        text = sent.get(_PREFIX + parameter.name, "")
        if not text and not (parameter.required and _kind(parameter) == "text"):
            continue
        try:
            arguments[parameter.name] = _value(parameter, text)
        except ValueError as error:
            problems.append(Problem(parameter.name, str(error)))
    if problems:
        raise InvalidArguments("the form cannot be read:", problems)
    return arguments


def _field(number: int, parameter: Parameter, sent: Mapping[str, str]) -> Field:
    name, kind = _PREFIX + parameter.name, _kind(parameter)
    is_long = parameter.name.lower() in _LONG_WORDS or kind == "json"
    types = parameter.type.removesuffix(" | null")
    hint = [types if kind != "json" else f"{types}, as JSON", parameter.description.rstrip(". ")]
    hint += [f"Default {_written(parameter.default)}"] if parameter.default is not None else []
    return Field(
        id=f"argument-{number}",
        name=name,
        label=parameter.name,
        kind=kind,
        required=parameter.required,
        hint=". ".join(part for part in hint if part),
        value=sent.get(name, ""),
        options=_options(parameter),
        rows=4 if is_long else 1,
    )


def _kind(parameter: Parameter) -> FieldKind:
    if _options(parameter):
        return "choice"
    kinds = {kind.strip() for kind in parameter.type.split("|")} - {"null"}
    if kinds == {"string"}:
        return "text"
    return "number" if kinds and kinds <= {"integer", "number"} else "json"


def _options(parameter: Parameter) -> tuple[str, ...]:
    if parameter.enum:
        return tuple(_written(value) for value in parameter.enum)
    return ("true", "false") if parameter.type in ("boolean", "boolean | null") else ()


def _value(parameter: Parameter, text: str) -> Any:
    match _kind(parameter):
        case "text":
            return text
        case "choice" if parameter.enum:
            found = [value for value in parameter.enum if _written(value) == text]
            if not found:
                raise ValueError(f"must be one of {', '.join(_options(parameter))}")
            return found[0]
        case _:
            return _from_json(text)


def _from_json(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON; a text needs quotes here") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("is too large")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
