"""Which legs of a way out a conversation has already walked, and which call would be the last one."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from squidbot.core.domain.role_review import LEGS, Leg

FlowLabels: TypeAlias = Mapping[str, Mapping[Leg, Sequence[str]]]
"""What each server's tools (globs) do with data."""


def legs_of_tool(server: str, names: Iterable[str], labels: FlowLabels) -> frozenset[Leg]:
    """What a tool does with data; `names` are all that it goes by, so that renaming it hides nothing."""
    known = labels.get(server, {})
    called = tuple(names)
    return frozenset(
        leg for leg in LEGS if any(fnmatchcase(name, glob) for name in called for glob in known.get(leg, ()))
    )


def way_out(tool: str, legs: frozenset[Leg], taken: Iterable[Leg]) -> str | None:
    """Why a call would let data walk out: it writes where others read, after the two other legs. None if it does not."""
    if "egress" not in legs or not {"untrusted", "private"} <= set(taken):
        return None
    return (
        f"{tool!r} writes where others read, and this conversation has already read what strangers wrote and what is "
        "not for everybody: a text that it read could be what asks for this"
    )
