"""The machine's clocks."""

import time
from datetime import UTC, datetime


class SystemClock:
    """Satisfies `Clock`."""

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    def timestamp(self) -> str:
        """Now in UTC, to the microsecond."""
        return f"{datetime.now(UTC).isoformat(timespec='microseconds')[:-6]}Z"
