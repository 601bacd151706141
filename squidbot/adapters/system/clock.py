"""The machine's clocks."""

import time


class SystemClock:
    """Satisfies `Clock`."""

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    def __init__(self) -> None:
        self._second = (-1, "")

    def timestamp(self) -> str:
        """Now in UTC, to the microsecond."""
        seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        known, text = self._second
        if seconds != known:
            # Written out once a second: many calls share all of it but the fraction.
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
            self._second = (seconds, text)
        return f"{text}.{nanoseconds // 1000:06d}Z"
