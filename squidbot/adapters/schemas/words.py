"""What does not fit a schema, said in plain words: where, what was found, what was expected."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

from squidbot.core.domain.errors import Problem
from squidbot.core.domain.text import visible

ValidationError: TypeAlias = Any
"""That of `jsonschema`, whose fields have types that say less than its documentation."""

_SHOWN = 80
_LONGEST_PATH = 2_000
_EXPECTED: Mapping[str, str] = {
    "const": "{}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "text that fits the pattern {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "uniqueItems": "no item twice",
    "minProperties": "at least {} properties",
    "maxProperties": "at most {} properties",
}


def words(error: ValidationError) -> Iterator[Problem]:
    """The problems that one error of the library stands for."""
    here = list(error.absolute_path)
    match error.validator:
        case "required" if isinstance(error.validator_value, list):
            # The library gives one error for each name without saying which: all are named, and told apart by path.
            for name in error.validator_value:
                if name not in error.instance:
                    yield _problem([*here, name], "is missing")
        case "required":
            # Draft 3, where each property says it of itself.
            yield _problem(here, "is missing")
        case "additionalProperties" if error.validator_value is False:
            known = list(error.schema.get("properties", {}))
            for name in _strangers(error.instance, error.schema):
                close = difflib.get_close_matches(name, known, n=1) if len(name) <= _SHOWN else ()
                hint = f"Did you mean {close[0]!r}?" if close else None
                yield _problem([*here, name], "is not a known name", hint=hint)
        case "anyOf" | "oneOf":
            yield _alternatives(error)
        case _:
            yield _problem(here, f"found {_found(error.instance)}, expected {_expected(error)}")


def _alternatives(error: ValidationError) -> Problem:
    here = list(error.absolute_path)
    if not error.context:
        return _problem(here, f"found {_found(error.instance)}, which fits more than one of the alternatives")
    if all(inner.validator in {"type", "const", "enum"} and not inner.path for inner in error.context):
        expected = dict.fromkeys(_expected(inner) for inner in error.context)
        return _problem(here, f"found {_found(error.instance)}, expected {_or(expected)}")
    # The alternative that went deepest into the value is the one that was most likely meant.
    nearest = max(error.context, key=lambda inner: (len(inner.path), inner.validator != "type"))
    problem = next(words(nearest))
    return Problem(problem.path, f"{problem.message} (in the nearest of several alternatives)", problem.hint)


def _expected(error: ValidationError) -> str:
    limit = error.validator_value
    match error.validator:
        case "type":
            return _or([limit] if isinstance(limit, str) else limit)
        case "enum":
            return _or(_found(choice) for choice in limit)
        case str(keyword) if keyword in _EXPECTED:
            return _EXPECTED[keyword].format(_found(limit))
        case None:
            return "nothing at all"
        case keyword:
            return f"what {keyword!r} in the schema allows"


def _strangers(instance: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    patterns = list(schema.get("patternProperties", {}))
    for name in instance:
        if name not in schema.get("properties", {}) and not any(re.search(pattern, name) for pattern in patterns):
            yield name


def _found(value: Any) -> str:
    """A value as JSON, if it is short; never all of a large one."""
    match value:
        case Mapping():
            return f"an object of {len(value)} properties"
        case list() | tuple():
            return f"an array of {len(value)} items"
        case str() if len(value) > _SHOWN:
            return f"{json.dumps(value[:_SHOWN], ensure_ascii=False)}... ({len(value)} characters)"
        case int() if value.bit_length() > _SHOWN * 8:
            # Not only long: Python refuses to write down the longest.
            return f"a number of {value.bit_length()} bits"
        case _:
            return json.dumps(value, ensure_ascii=False, default=lambda other: type(other).__name__)[: _SHOWN * 2]


def _or(choices: Iterable[str]) -> str:
    # Each takes three characters at least, with its comma: of very many, these fill all that is shown.
    listed = ", ".join(islice(choices, _SHOWN * 2))
    listed = listed if len(listed) <= _SHOWN * 4 else f"{listed[: _SHOWN * 4]}..."
    head, comma, last = listed.rpartition(", ")
    return f"{head} or {last}" if comma else last


def _problem(path: Iterable[str | int], message: str, *, hint: str | None = None) -> Problem:
    # Both may come from a server, and both are read by people.
    where = visible(_written(path), newlines=False)
    return Problem(
        where if len(where) <= _LONGEST_PATH else f"...{where[-_LONGEST_PATH:]}", visible(message, newlines=False), hint
    )


def _written(path: Iterable[str | int]) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[\w-]{1,64}", step):
            text += f".{step}" if text else step
        else:
            text += f"[{_found(step)}]"
    return text
