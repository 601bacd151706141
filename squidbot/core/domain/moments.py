"""Points in time as people and programs give them: a date, a date with a time, or so long ago."""

import re
from datetime import UTC, datetime, timedelta

MOMENTS = "Give a date (2026-11-18), a date and time (2026-11-18T10:56), or how long ago (15m, 12h, 7d, 2w)."
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)


def moment(text: str, *, now: datetime | None = None) -> str | None:
    """The timestamp that `text` means: `2026-11-18`, `2026-11-18T10:56`, or `15m`, `12h`, `7d`, `2w` ago; None if none."""
    ago = _AGO.fullmatch(text)
    try:
        if ago:
            return stamp((now or datetime.now(UTC)) - timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
        given = datetime.fromisoformat(text)
        return stamp(given if given.tzinfo else given.astimezone())
    except (ValueError, OverflowError, OSError):
        return None


def stamp(time: datetime) -> str:
    """A point in time as records have it."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
