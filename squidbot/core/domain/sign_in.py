"""Tokens as text, and how many refusals are worth a record of their own."""

import hashlib
import re
import secrets
from dataclasses import dataclass

PREFIX = "sqb_"
_TOKEN = re.compile(r"sqb_([0-9a-f]{12})_([0-9a-f]{64})")
_SPAN = re.compile(r"([1-9][0-9]{0,4})(m|h|d|w|y)")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}


@dataclass(frozen=True, slots=True)
class TokenParts:
    """A token's id, which may be shown, and the digest of its secret, which is kept."""

    id: str
    digest: str


def new_token() -> tuple[str, TokenParts]:
    """A token with 256 random bits, and what is kept of it."""
    name, secret = secrets.token_hex(6), secrets.token_hex(32)
    return f"{PREFIX}{name}_{secret}", TokenParts(name, _digest(secret))


def parts_of(token: str) -> TokenParts | None:
    """What a token says of itself; None if it is none of ours."""
    found = _TOKEN.fullmatch(token)
    return TokenParts(found[1], _digest(found[2])) if found else None


def span(text: str) -> int | None:
    """The seconds that `30d`, `12h`, `90m`, `2w` or `1y` mean; None for anything else."""
    found = _SPAN.fullmatch(text)
    return int(found[1]) * _SECONDS[found[2]] if found else None


def member_id(name: str) -> str:
    """The id of the member called so: the same wherever and whenever it is asked for."""
    return f"m_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


class RefusalBudget:
    """A few records at once, then one in a while: a flood of what is refused must not fill the disk. Time comes in as a number."""

    _AT_ONCE = 20
    _SECONDS_EACH = 10.0

    def __init__(self) -> None:
        self._left = float(self._AT_ONCE)
        self._seen: float | None = None
        self._kept_back = 0

    def take(self, now: float) -> int | None:
        """None if this one is only counted; else how many were only counted before it, which is to be told with it."""
        if self._seen is not None:
            self._left = min(self._left + (now - self._seen) / self._SECONDS_EACH, float(self._AT_ONCE))
        self._seen = now
        if self._left < 1:
            self._kept_back += 1
            return None
        self._left -= 1
        missed, self._kept_back = self._kept_back, 0
        return missed


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()
