"""The world's time: one way of writing it down, and times counted from the first start."""

import re
from datetime import UTC, datetime, time, timedelta

_STAMP = "%Y-%m-%dT%H:%M:%SZ"
_RELATIVE = re.compile(r"@([+-]\d+) (\d\d):(\d\d)@")


def now() -> str:
    """The present moment, as the world writes it."""
    return written(datetime.now(UTC))


def written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(_STAMP)


def dated(text: str, start: datetime, *, epoch: bool = False) -> str:
    """`text` with each `@-3 10:20@` replaced by that time of the day three days before `start`."""

    def moment(match: re.Match[str]) -> str:
        days, hours, minutes = (int(group) for group in match.groups())
        found = datetime.combine(start.date() + timedelta(days=days), time(hours, minutes), UTC)
        return f"{int(found.timestamp())} +0000" if epoch else written(found)

    return _RELATIVE.sub(moment, text)
