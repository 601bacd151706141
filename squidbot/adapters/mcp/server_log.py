"""What servers log, in our own log."""

import json
import time

from loguru import logger

from squidbot.core.domain.budget import LineBudget
from squidbot.core.domain.servers import LOG_SEVERITY, ServerLog
from squidbot.core.domain.text import visible

_LONGEST_LOG = 4_000
_UNNAMED = frozenset({"notice", "alert", "emergency"})
"""The levels of the protocol for which loguru has no name of its own."""
_lines = LineBudget()


def log_entry(entry: ServerLog) -> None:
    """A server's log message in our own log, with its server, at our nearest level."""
    missed = _lines.take(entry.server, time.monotonic())
    if missed is None:
        return
    words = entry.data if isinstance(entry.data, str) else json.dumps(entry.data, ensure_ascii=False, default=str)
    source = f"{entry.server}.{entry.logger}" if entry.logger else entry.server
    note = f" (after {missed} more that were left out)" if missed else ""
    level = LOG_SEVERITY[entry.level] if entry.level in _UNNAMED else entry.level.upper()
    logger.bind(server=entry.server).log(
        level, "[{}] {}{}", source, visible(words[: 4 * _LONGEST_LOG], newlines=False)[:_LONGEST_LOG], note
    )
