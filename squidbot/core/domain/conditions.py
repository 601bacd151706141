"""Conditions on arguments: a grant that holds only for some branches, repositories, projects."""

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

Conditions: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Each argument, and the globs of which one must match it."""

_ABSENT = object()


def unmet(conditions: Conditions, arguments: Mapping[str, Any]) -> str | None:
    """Which condition the arguments do not meet, in words; None if they meet all."""
    for name, globs in conditions:
        value = _at(name, arguments)
        wanted = " or ".join(repr(glob) for glob in globs)
        if value is _ABSENT:
            return f"{name!r} must be given and match {wanted}"
        if not _meets(value, globs):
            return f"{name!r} must match {wanted}"
    return None


def possible(conditions: Conditions, fixed: Mapping[str, Any]) -> bool:
    """Whether some arguments could meet the conditions, where those in `fixed` are what they are."""
    return all(_at(name, fixed) is _ABSENT or _meets(_at(name, fixed), globs) for name, globs in conditions)


def described(conditions: Conditions) -> str:
    """The conditions as a person reads them."""
    return " and ".join(f"{name} matches {' or '.join(globs)}" for name, globs in conditions)


def _at(name: str, arguments: Mapping[str, Any]) -> Any:
    """The argument called `name`, or inside of one: `review.event`."""
    if name in arguments:
        return arguments[name]
    head, dot, rest = name.partition(".")
    inner = arguments.get(head) if dot else None
    return _at(rest, inner) if isinstance(inner, Mapping) else _ABSENT


def _meets(value: Any, globs: Sequence[str]) -> bool:
    """Whether a value, or each of several, matches one of the globs. What is no plain value matches none."""
    match value:
        case str():
            return any(_matches(value, glob) for glob in globs)
        case bool() | int() | float() | None:
            return json.dumps(value) in globs or "*" in globs
        case list() | tuple():
            return len(value) > 0 and all(not isinstance(part, list | tuple) and _meets(part, globs) for part in value)
        case _:
            return False


def _matches(value: str, glob: str) -> bool:
    if value == glob:
        return True
    # `docs/*` means what is below docs: not what climbs out of it again, and not a second line.
    if any(step == ".." for step in value.replace("\\", "/").split("/")) or any(ord(char) < 32 for char in value):
        return False
    return fnmatchcase(value, glob)
