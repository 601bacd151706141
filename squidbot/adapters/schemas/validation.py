"""Holds a value against a JSON Schema with `jsonschema`: every problem at once, nothing fetched, no schema an error.

Used in two processes: ours, for plain schemas, and a worker's, for all others. `jsonschema` is imported by the first
schema that is compiled: it costs more than most of what needs no check at all.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from squidbot.adapters.schemas.words import words
from squidbot.core.domain.errors import Problem

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_PROBLEMS = 100

_Keyword = Callable[..., Iterator[Any] | None]


def compile_schema(schema: Mapping[str, Any], *, well_formed: bool = False) -> "Validator | None":
    """A validator, or None for a schema that is none and so constrains nothing.

    Draft 2020-12 where the schema does not say otherwise. What is known to be `well_formed` is not looked at again.
    """
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry

    plain = dict(schema)
    try:
        dialect: Any = validator_for(plain, default=Draft202012Validator)
        if not well_formed:
            # Without formats: an expression that only other languages understand spoils its keyword, not the schema.
            dialect.check_schema(plain, format_checker=None)
        # A registry of its own fetches nothing; the library's default one would.
        validator: Validator = _lenient(dialect)(plain, registry=Registry())
    except (SchemaError, TypeError, ValueError, RecursionError):
        return None
    return validator


def all_problems(validator: "Validator", value: Any) -> tuple[Problem, ...]:
    """All that does not fit, each with its path; of very many the first hundred."""
    found: dict[Problem, None] = {}
    try:
        for error in validator.iter_errors(value):
            for problem in words(error):
                found[problem] = None
                if len(found) == _PROBLEMS:
                    return tuple(found)
    except RecursionError:
        # A schema that refers to itself without end; what it said until then still counts.
        pass
    return tuple(found)


@cache
def _lenient(dialect: Any) -> Any:
    """The dialect with keywords that constrain nothing where they cannot be applied."""
    from jsonschema import validators

    keywords = dict(dialect.VALIDATORS)
    if "required" in keywords:
        keywords["required"] = _required
    extend: Any = validators.extend
    return extend(dialect, {name: _forgiving(keyword) for name, keyword in keywords.items()})


def _required(validator: Any, names: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """One error for all names that are missing; the library's, one for each, does not say for which."""
    from jsonschema import ValidationError

    del schema
    if validator.is_type(instance, "object") and any(name not in instance for name in names):
        yield ValidationError("properties are missing")


def _forgiving(keyword: _Keyword) -> _Keyword:
    from referencing.exceptions import Unresolvable

    def apply(validator: Any, limit: Any, instance: Any, schema: Any) -> Iterator[Any]:
        try:
            yield from keyword(validator, limit, instance, schema) or ()
        except (Unresolvable, re.error, ArithmeticError, TypeError, ValueError):
            return

    return apply
