"""The log: one clean line per event on stderr, servers' own messages included, secrets blanked."""

import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from loguru import logger

from squidbot.core.domain.budget import LineBudget
from squidbot.core.domain.redaction import Redactor
from squidbot.core.domain.servers import LOG_SEVERITY, LogLevel, ServerLog
from squidbot.core.domain.text import head_and_tail, visible

if TYPE_CHECKING:
    from loguru import Message, Record

LEVELS: Final[dict[LogLevel, str]] = {level: level.upper() for level in LOG_SEVERITY}
"""The protocol's eight levels in our log."""

_BY_VERBOSITY: Final = ("ERROR", "WARNING", "INFO", "DEBUG")
LIBRARIES: Final = ("squidbot", "mcp", "httpx2", "httpcore2", "websockets", "asyncio")
"""Who logs by the standard library; foreign ones speak below a warning of themselves, not of what they do for us."""
_LONGEST: Final = 4_000
_server_lines: Final = LineBudget()
_COLORS: Final = ((40, "31"), (30, "33"), (20, "36"), (0, "2"))


def set_up_logging(*, verbosity: int = 0, redactor: Redactor | None = None) -> None:
    """Send the log to stderr: warnings, with `verbosity` 1 also information, with 2 everything; with -1 only errors.

    The redactor knows what the settings add to its secrets later, too.
    """
    for protocol_level, name in LEVELS.items():
        try:
            logger.level(name)
        except ValueError:  # one of those that loguru lacks
            logger.level(name, no=LOG_SEVERITY[protocol_level])
    level = _BY_VERBOSITY[min(verbosity + 1, len(_BY_VERBOSITY) - 1)]
    logger.enable("squidbot")
    logger.remove()
    logger.add(_writer(redactor or Redactor(), traces=level == "DEBUG"), level=level, format="{message}")
    for name in LIBRARIES:
        library = logging.getLogger(name)
        library.handlers = [_Intercept()]
        library.propagate = False
        library.setLevel(level if name == "squidbot" else logging.WARNING)


def log_server_message(message: ServerLog) -> None:
    """Put what a server logged into our log, under its name and at its level."""
    missed = _server_lines.take(message.server, time.monotonic())
    if missed is None:
        return
    text = message.data if isinstance(message.data, str) else repr(message.data)
    source = f"{message.logger}: " if message.logger else ""
    note = f" (after {missed} more that were left out)" if missed else ""
    logger.bind(server=message.server).log(LEVELS[message.level], "{}", source + text + note)


class _Intercept(logging.Handler):
    """Hands a record of the standard library's logging to loguru."""

    def emit(self, record: logging.LogRecord) -> None:
        logger.opt(exception=record.exc_info).log(_level_name(record.levelno), "{}", record.getMessage())


def _level_name(number: int) -> str:
    return "ERROR" if number >= 40 else "WARNING" if number >= 30 else "INFO" if number >= 20 else "DEBUG"


def _writer(redactor: Redactor, *, traces: bool) -> Callable[["Message"], None]:
    def write(message: "Message") -> None:
        stream = sys.stderr  # looked up each time: a progress bar puts itself before it
        dressed = stream.isatty() and not os.environ.get("NO_COLOR")
        text = head_and_tail(redactor.text(_text(message.record, traces=traces)), _LONGEST)
        # Line ends stay visible as such: a server's last words are several, and run together they are a riddle.
        text = " | ".join(line.strip() for line in text.splitlines() if line.strip())
        stream.write(_line(message.record, visible(text, newlines=False), dressed=dressed))
        stream.flush()

    return write


def _text(record: "Record", *, traces: bool) -> str:
    server, text = record["extra"].get("server"), record["message"]
    if server and repr(server) not in text:
        text = f"{server}: {text}"
    error = record["exception"]
    if error is None or error.value is None:
        return text
    return f"{text}: {''.join(traceback.format_exception(error.value)) if traces else repr(error.value)}"


def _line(record: "Record", text: str, *, dressed: bool) -> str:
    level = f"{record['level'].name:<8}"
    if not dressed:
        return f"{record['time']:YYYY-MM-DD HH:mm:ss} {level} {text}\n"
    color = next(color for least, color in _COLORS if record["level"].no >= least)
    return f"\x1b[2m{record['time']:HH:mm:ss}\x1b[0m \x1b[{color}m{level}\x1b[0m {text}\n"
