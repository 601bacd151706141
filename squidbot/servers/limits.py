"""When an API's rate limit is over, from the headers in which APIs say so."""

import email.utils
import time
from collections.abc import Mapping
from datetime import UTC, datetime


def is_rate_limit(status: int, headers: Mapping[str, str], said: str) -> bool:
    """GitHub also uses 403 for it, and marks that by a header, or in its secondary limits only by words."""
    if status == 403:
        return headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers or "rate limit" in said.lower()
    return status == 429


def when_to_try_again(headers: Mapping[str, str], *, now: float | None = None) -> str:
    """Both the time and the wait: a model has no clock, a person no patience to add."""
    now = time.time() if now is None else now
    at = _retry_after(headers, now) or _reset(headers)
    if at is None:
        return "try again in a minute"
    moment = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"try again at {moment} (in {max(0, round(at - now))} s)"


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    value = headers.get("retry-after", "").strip()
    if value.isdecimal() and len(value) < 8:
        return now + int(value)
    try:
        return email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None


def _reset(headers: Mapping[str, str]) -> float | None:
    """Seconds since 1970 from GitHub, a written date from Jira."""
    value = headers.get("x-ratelimit-reset", "").strip()
    if value.isdecimal():
        return float(value) if len(value) < 12 else None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
