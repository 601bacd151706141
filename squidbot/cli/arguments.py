"""`key=value` on the command line made into a tool's arguments, typed by the tool's own schema."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from squidbot.cli.errors import CommandError
from squidbot.core.domain.schemas import flat_parameters


@dataclass(frozen=True, slots=True)
class GivenArguments:
    """What the command line says, read but not yet typed."""

    texts: Mapping[str, str]
    """By `key=value` and `key=@file`: what type they have only the schema can tell."""
    values: Mapping[str, Any]
    """By `--args`: JSON already."""


def read_arguments(pairs: Sequence[str], whole: str | None) -> GivenArguments:
    """Everything that can be wrong before a schema is known is found here, before anything is started."""
    texts: dict[str, str] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise _wrong(f"{pair!r} is no argument", "Arguments are written key=value, or all at once as --args JSON.")
        if any("\ud800" <= character <= "\udfff" for character in pair):
            raise _wrong(f"argument {key!r} is no UTF-8 text", "Put bytes into a file of their own, and name the file.")
        if key in texts:
            raise _wrong(f"argument {key!r} is given twice", "Give a list as JSON: key='[1, 2]'.")
        texts[key] = _read_file(text[1:], f"{key}=@") if text.startswith("@") else text
    return GivenArguments(texts=texts, values=_read_object(whole) if whole is not None else {})


def typed_arguments(given: GivenArguments, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the schema wants them; what does not fit is left as text, for the schema check to name."""
    kinds = {parameter.name: frozenset(parameter.type.split(" | ")) for parameter in flat_parameters(schema)}
    typed = {key: _typed(text, kinds.get(key, frozenset({"any"}))) for key, text in given.texts.items()}
    return {**given.values, **typed}


def _typed(text: str, kinds: frozenset[str]) -> Any:
    if kinds == {"string"}:
        return text
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text
    # Where a string would do as well, only what is clearly of another allowed type is taken as that.
    return value if "string" not in kinds or kinds & _kinds_of(value) else text


def _kinds_of(value: Any) -> frozenset[str]:
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"number"})
        case str():
            return frozenset({"string"})
        case list():
            return frozenset({"array"})
        case _:
            return frozenset({"object"})


def _read_object(whole: str) -> dict[str, Any]:
    text = _read_file(whole[1:], "--args @") if whole.startswith("@") else whole
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        line = text.splitlines()[error.lineno - 1] if text.strip() else ""
        where = f"line {error.lineno}, column {error.colno}"
        raise _wrong(
            f"--args is no valid JSON: {error.msg} at {where}\n  {line}\n  {' ' * (error.colno - 1)}^",
            """Write it in single quotes: --args '{"path": "notes.txt"}'.""",
        ) from None
    except (ValueError, RecursionError) as error:
        raise _wrong(f"--args is no valid JSON: {error}", None) from None
    if not isinstance(value, dict):
        raise _wrong(f"--args must be a JSON object, not {_said(value)}", None)
    return value


def _read_file(name: str, spelling: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).expanduser().read_text("utf-8")
    except UnicodeDecodeError as error:
        raise _wrong(
            f"{spelling}{name}: the file is no UTF-8 text ({error.reason} at byte {error.start})", None
        ) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
        raise _wrong(
            f"{spelling}{name}: the file cannot be read: {reason}",
            "@ reads a file. A text that begins with @ goes into --args.",
        ) from None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twin = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        raise ValueError(f"key {twin!r} is there twice")
    return result


def _said(value: Any) -> str:
    kind = min(_kinds_of(value))
    return "null" if kind == "null" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _wrong(message: str, hint: str | None) -> CommandError:
    return CommandError(message, code="invalid_arguments", hint=hint)
