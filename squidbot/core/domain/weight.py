"""How much there is in a JSON value, counted no further than it matters."""

from collections.abc import Mapping
from typing import Any

CHARACTERS = 32
"""As many characters of text weigh like one value: about as much memory."""


def weight(value: Any, most: int, *, characters: int = CHARACTERS) -> int:
    """The values in `value`, and its text by its length; once it is more than `most`, no more is counted."""
    total = 0
    waiting = [value]
    while waiting and total <= most:
        part = waiting.pop()
        total += 1
        # The commonest first, and not by `match`: this is asked at every call.
        if isinstance(part, (str, bytes)):
            total += len(part) // characters
        elif isinstance(part, (dict, Mapping)):
            total += sum(map(len, part)) // characters
            waiting.extend(part.values())
        elif isinstance(part, (list, tuple)):
            waiting.extend(part)
    return total
