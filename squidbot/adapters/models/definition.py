"""Which model, where it is, what it takes and what it costs."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from squidbot.core.domain.conversation import TokenUsage

Input: TypeAlias = Literal["image", "audio"]

MOST_OUTPUT = 8_192
"""Tokens of one turn, where the settings say nothing."""


@dataclass(frozen=True, slots=True)
class ModelDefinition:
    """One model as the settings have it."""

    name: str
    base_url: str | None = None
    api_key: str | None = None
    inputs: frozenset[Input] = frozenset()
    """What it takes beside text."""
    price: tuple[float, float] | None = None
    """US dollars for a million tokens, read and written."""
    max_output: int | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, so that no proxy is on the way, and no key is needed."""
        host = urlsplit(self.base_url or "").hostname or ""
        try:
            return host == "localhost" or ip_address(host).is_loopback
        except ValueError:
            return False

    def usage(self, read: int, written: int, cost: float | None = None) -> TokenUsage:
        """What was used up, with its cost where the price is known."""
        if cost is None and self.price is not None:
            cost = (read * self.price[0] + written * self.price[1]) / 1_000_000
        return TokenUsage(read, written, cost)

    def most_output(self, left: int | None) -> int | None:
        """How many tokens a turn may have, if that must be said."""
        if left is not None and left < (self.max_output or MOST_OUTPUT):
            return left
        return self.max_output
