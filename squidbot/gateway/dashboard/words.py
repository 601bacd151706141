"""Numbers and moments as people read them."""

import json
from datetime import UTC, datetime
from typing import Any

from squidbot.core.domain.text import visible

NOTHING = "\u2013"
"""Stands where there is nothing to say."""
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def seconds(value: float | None) -> str:
    """A duration: `8 ms`, `1.4 s`, `2 min`."""
    if value is None:
        return NOTHING
    if value < 0.0005:
        return "< 1 ms" if value else "0"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 100 else f"{value / _MINUTE:.0f} min"


def ago(then: float, now: float) -> str:
    """How long since: `12 s`, `3 min`, `5 h`, `2 d`."""
    passed = max(now - then, 0)
    for size, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if passed >= size:
            return f"{int(passed // size)} {name}"
    return f"{int(passed)} s"


def counted(number: int, thing: str) -> str:
    """`1 call`, `2 calls`, `no calls`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}" if number else f"no {thing}s"


def moment(at: float) -> str:
    """A moment as records have it: `2026-11-18T10:56:31.123456Z`."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def pretty(text: str | None) -> str:
    """JSON in lines, for reading; what is no JSON, or too deep to be laid out, stays as it is."""
    if text is None:
        return ""
    try:
        return laid_out(json.loads(text))
    except (ValueError, RecursionError):
        return text


def laid_out(value: Any) -> str:
    """A value as JSON in lines, its characters as they are."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def one_line(text: object, limit: int = 200) -> str:
    """Foreign text in one line, with nothing in it that is not seen, cut to `limit`."""
    line = visible(str(text), newlines=False)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
