"""How many lines one talkative source may have in a log before the rest is only counted."""

from dataclasses import dataclass

LINES = 40
SECONDS = 10.0


@dataclass(slots=True)
class _Window:
    began: float
    told: int = 0
    kept_back: int = 0


class LineBudget:
    """`LINES` in `SECONDS` for each source; the time comes in as a number."""

    def __init__(self) -> None:
        self._windows: dict[str, _Window] = {}

    def take(self, source: str, now: float) -> int | None:
        """None if the line is kept back; else how many were kept back before it, which should be told with it."""
        window = self._windows.get(source)
        if window is None or now - window.began >= SECONDS:
            missed = window.kept_back if window else 0
            self._windows[source] = _Window(now, told=1)
            return missed
        if window.told >= LINES:
            window.kept_back += 1
            return None
        window.told += 1
        return 0
