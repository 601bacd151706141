"""How much there is in a JSON value, counted no further than it matters."""

from collections.abc import Mapping
from typing import Any

CHARACTERS = 32
"""As many characters of text weigh like one value: about as much memory."""
_PLAIN = frozenset({int, float, bool, type(None)})


def weight(value: Any, most: int, *, characters: int = CHARACTERS) -> int:
    """The values in `value`, and its text by its length; once it is more than `most`, no more is counted."""
    total = 0
    waiting = [value]
    while waiting and total <= most:
        part = waiting.pop()
        total += 1
        # The commonest first, not by `match`, and nothing asked of an abstract class: this is done at every call.
        kind = type(part)
        if kind is str or kind is bytes:
            total += len(part) // characters
        elif kind in _PLAIN:
            continue
        elif kind is list or kind is tuple:
            waiting.extend(part)
        elif kind is dict or isinstance(part, Mapping):
            total += sum(map(len, part)) // characters
            waiting.extend(part.values())
        elif isinstance(part, (str, bytes)):
            total += len(part) // characters
        elif isinstance(part, (list, tuple)):
            waiting.extend(part)
    return total
