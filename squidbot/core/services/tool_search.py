"""Finds the right tool among hundreds: BM25 over names and descriptions, in one pass."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from squidbot.core.domain.tools import ToolDefinition

_K1 = 1.2
_B = 0.75
_IN_NAME = 3
"""How much more a word counts in a name than in a description."""
_WORD = re.compile(r"[^\W_]+")
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class ToolSearch:
    """The words of all tools, counted once; a search is linear in the number of tools."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._tools = tuple(tools)
        self._counts = [_counted(tool) for tool in self._tools]
        self._lengths = [count.total() for count in self._counts]
        self._average = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0
        self._having = Counter(word for count in self._counts for word in count)

    def find(self, query: str, limit: int = 8) -> list[ToolDefinition]:
        """The tools that fit best, the best first; none that has no word of the query."""
        asked = set(_words(query))
        scored = [(self._score(asked, index), index) for index in range(len(self._tools))]
        best = sorted((found for found in scored if found[0] > 0), key=lambda found: (-found[0], found[1]))
        return [self._tools[index] for _, index in best[:limit]]

    def _score(self, asked: set[str], index: int) -> float:
        count, length = self._counts[index], self._lengths[index]
        room = _K1 * (1 - _B + _B * length / self._average)
        return sum(
            self._rarity(word) * count[word] * (_K1 + 1) / (count[word] + room) for word in asked if word in count
        )

    def _rarity(self, word: str) -> float:
        having = self._having[word]
        return math.log(1 + (len(self._tools) - having + 0.5) / (having + 0.5))


def _counted(tool: ToolDefinition) -> Counter[str]:
    words = Counter(_words(f"{tool.description} {' '.join(map(str, tool.parameters.get('properties') or ()))}"))
    for word in _words(f"{tool.server} {tool.tool} {tool.title or ''}"):
        words[word] += _IN_NAME
    return words


def _words(text: str) -> list[str]:
    """Words as they are compared: small, apart at capitals and underscores, without their plural."""
    found = (word.lower() for part in _JOINT.split(text) for word in _WORD.findall(part))
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in found]
