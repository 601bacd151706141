"""From the name that somebody typed to the one thing that is meant, or to the nearest names."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from squidbot.cli.errors import CommandError

T = TypeVar("T")


def nearest(wanted: str, names: Iterable[str]) -> list[str]:
    """What was perhaps meant: alike in spelling, or holding the wanted word."""
    known = sorted(set(names))
    alike = difflib.get_close_matches(wanted, known, n=3, cutoff=0.6)
    holding = [name for name in known if wanted and wanted.lower() in name.lower()]
    return list(dict.fromkeys([*alike, *holding]))[:3]


def find_one(wanted: str, things: Sequence[T], *, names: Callable[[T], Sequence[str]], kind: str) -> T:
    """The one of `things` that is called `wanted`.

    Each thing's `names` go from the one that only it has to those that others may have too. Raises
    CommandError, with the nearest names, if none or several are meant.
    """
    for rank in range(max((len(names(thing)) for thing in things), default=0)):
        found = [thing for thing in things if names(thing)[rank : rank + 1] == [wanted]]
        if len(found) == 1:
            return found[0]
        if found:
            raise CommandError(
                f"{len(found)} {kind}s are called {wanted!r}",
                code=f"unknown_{kind}",
                hint=f"Say which: {', '.join(sorted(names(thing)[0] for thing in found))}.",
            )
    raise unknown(wanted, [name for thing in things for name in names(thing)], kind=kind)


def unknown(wanted: str, known: Sequence[str], *, kind: str) -> CommandError:
    """The error for a name that nothing has."""
    near = nearest(wanted, known)
    hint = f"Did you mean {' or '.join(repr(name) for name in near)}?" if near else f"See 'squidbot {kind}s list'."
    if kind == "role":  # they are few, and each is a word that one has to know
        hint = f"{hint if near else ''} There are: {', '.join(known)}.".strip()
    return CommandError(f"unknown {kind} {wanted!r}", code=f"unknown_{kind}", hint=hint)


def unknown_role(wanted: str, known: Sequence[str]) -> CommandError:
    """The error for a role that there is not: a person is told which there are."""
    error = unknown(wanted, known, kind="role")
    if not nearest(wanted, known):
        error.hint = f"There are: {', '.join(known)}."
    return error
