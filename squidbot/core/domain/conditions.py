"""Conditions on arguments: a grant that holds only for some branches, repositories, projects."""

import json
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

Conditions: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Each argument, and the globs of which one must match it."""


def unmet(conditions: Conditions, arguments: Mapping[str, Any]) -> str | None:
    """Which condition the arguments do not meet, in words; None if they meet all."""
    for name, globs in conditions:
        values = list(_values(name, arguments))
        wanted = " or ".join(repr(glob) for glob in globs)
        if not all(_meets(value, globs) for value in values):
            return f"{name!r} must match {wanted}"
        if not _is_given(name, arguments):
            return f"{name!r} must be given and match {wanted}"
    return None


def possible(conditions: Conditions, fixed: Mapping[str, Any]) -> bool:
    """Whether some arguments could meet the conditions, where those in `fixed` are what they are."""
    return all(_meets(value, globs) for name, globs in conditions for value in _values(name, fixed))


def described(conditions: Conditions) -> str:
    """The conditions as a person reads them."""
    return " and ".join(f"{name} matches {' or '.join(globs)}" for name, globs in conditions)


def _is_given(name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether there is an argument of this very name, or such a one inside of another: `review.event`."""
    head, dot, rest = name.partition(".")
    if not dot:
        return name in arguments
    inner = arguments.get(head)
    return isinstance(inner, Mapping) and _is_given(rest, inner)


def _values(name: str, arguments: Mapping[str, Any]) -> Iterator[Any]:
    """Every value that some server could take for this argument: there are some to which `Branch` is `branch`."""
    head, dot, rest = name.partition(".")
    for key, value in arguments.items():
        if _alike(key, name):
            yield value
        elif dot and _alike(key, head):
            yield from _values(rest, value) if isinstance(value, Mapping) else (value,)


def _alike(key: object, name: str) -> bool:
    return str(key).casefold() == name.casefold()


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
