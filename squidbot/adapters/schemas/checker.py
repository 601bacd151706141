"""Holds values against JSON Schemas with `jsonschema`: every problem at once, nothing fetched, no schema an error.

`jsonschema` is imported at the first check: it costs more than most of what needs no check at all.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from squidbot.adapters.schemas.words import words
from squidbot.core.domain.errors import Problem

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_COMPILED = 512
_PROBLEMS = 100

_Keyword = Callable[..., Iterator[Any] | None]


class JSONSchemaCheck:
    """The check of arguments and of structured results; Draft 2020-12 where a schema does not say otherwise."""

    def __init__(self) -> None:
        # By identity, with the schema kept beside its validator, so that no other can come to have its id.
        self._compiled: OrderedDict[int, tuple[Mapping[str, Any], Validator | None]] = OrderedDict()

    async def problems(self, schema: Mapping[str, Any], value: Any) -> Sequence[Problem]:
        """All that does not fit, each with its path; of very many the first hundred."""
        validator = self._validator(schema)
        if validator is None:
            return ()
        found: dict[Problem, None] = {}
        plain = dict(value) if isinstance(value, Mapping) else value
        try:
            for error in islice(validator.iter_errors(plain), _PROBLEMS):
                found.update(dict.fromkeys(words(error)))
        except RecursionError:
            # A schema that refers to itself without end; what it said until then still counts.
            pass
        return tuple(found)

    def _validator(self, schema: Mapping[str, Any]) -> "Validator | None":
        known = self._compiled.get(id(schema))
        if known is None:
            known = self._compiled[id(schema)] = (schema, _compile(schema))
            if len(self._compiled) > _COMPILED:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(id(schema))
        return known[1]


def _compile(schema: Mapping[str, Any]) -> "Validator | None":
    """A validator, or None for a schema that is none and so constrains nothing."""
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry

    plain = dict(schema)
    try:
        dialect: Any = validator_for(plain, default=Draft202012Validator)
        # Without formats: an expression that only other languages understand spoils its keyword, not the schema.
        dialect.check_schema(plain, format_checker=None)
        # A registry of its own fetches nothing; the library's default one would.
        validator: Validator = _lenient(dialect)(plain, registry=Registry())
    except (SchemaError, TypeError, ValueError, RecursionError):
        return None
    return validator


@cache
def _lenient(dialect: Any) -> Any:
    """The dialect with keywords that constrain nothing where they cannot be applied."""
    from jsonschema import validators

    extend: Any = validators.extend
    return extend(dialect, {name: _forgiving(keyword) for name, keyword in dialect.VALIDATORS.items()})


def _forgiving(keyword: _Keyword) -> _Keyword:
    from referencing.exceptions import Unresolvable

    def apply(validator: Any, limit: Any, instance: Any, schema: Any) -> Iterator[Any]:
        try:
            yield from keyword(validator, limit, instance, schema) or ()
        except (Unresolvable, re.error, ArithmeticError, TypeError, ValueError):
            return

    return apply
