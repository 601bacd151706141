"""The log on stderr."""

import logging
import re
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loguru import logger

from squidbot.adapters.telemetry.logging import LEVELS, LIBRARIES, log_server_message, set_up_logging
from squidbot.core.domain.redaction import Redactor
from squidbot.core.domain.servers import LogLevel, ServerLog

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def the_log_as_it_was() -> Iterator[None]:
    """The log is the process's own; the tests after these have theirs."""
    before = {name: logging.getLogger(name) for name in LIBRARIES}
    kept = {name: (library.handlers, library.propagate, library.level) for name, library in before.items()}
    yield
    for name, (handlers, propagate, level) in kept.items():
        before[name].handlers, before[name].propagate = handlers, propagate
        before[name].setLevel(level)


@pytest.mark.requirement("G-06")
@pytest.mark.parametrize(("level", "name"), LEVELS.items())
def test_a_servers_message_comes_out_with_its_name_and_level(level: LogLevel, name: str, capsys: Capture) -> None:
    """Eight levels of the protocol, eight in the log: none is lost, none becomes another."""
    set_up_logging(verbosity=2)
    log_server_message(ServerLog(server="weather", level=level, data="it rains", logger="sky"))
    assert re.fullmatch(rf"\S+ \S+ {name} +weather: sky: it rains\n", capsys.readouterr().err)


@pytest.mark.requirement("G-06")
def test_structured_log_data_is_shown_as_it_is(capsys: Capture) -> None:
    """The protocol lets a server log any JSON, and braces in it are no template."""
    set_up_logging(verbosity=2)
    log_server_message(ServerLog(server="s", level="error", data={"code": 7, "text": "{oops}"}))
    assert "s: {'code': 7, 'text': '{oops}'}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verbosity", "seen"), [(-1, []), (0, ["w"]), (1, ["i", "n", "w"]), (2, ["d", "i", "n", "w"]), (9, list("dinw"))]
)
def test_more_is_said_when_asked(verbosity: int, seen: list[str], capsys: Capture) -> None:
    """Quiet by default: a log that says everything is not read."""
    set_up_logging(verbosity=verbosity)
    logger.debug("d")
    logger.info("i")
    logger.log("NOTICE", "n")
    logger.warning("w")
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == seen


_servers = count()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=())))
def test_one_event_is_one_line_whatever_it_says(capsys: Capture, text: str) -> None:
    """A server that logs line ends must not be able to forge an event of another."""
    set_up_logging()
    capsys.readouterr()
    log_server_message(ServerLog(server=f"s{next(_servers)}", level="error", data=text))
    written = capsys.readouterr().err
    assert len(written.splitlines()) == 1
    assert "\x1b" not in written


def test_secrets_are_blanked_also_those_learnt_later(capsys: Capture) -> None:
    """The log starts before the settings are read, and no secret may pass through it."""
    secrets: set[str] = set()
    set_up_logging(redactor=Redactor(secrets))
    secrets.add("hunter2-token")
    logger.error("refused: hunter2-token")
    try:
        raise ValueError("hunter2-token is wrong")
    except ValueError:
        logger.exception("failed")
    written = capsys.readouterr().err
    assert "hunter2" not in written
    assert written.count("[redacted:") == 2


def test_an_exception_is_its_last_line_and_with_verbosity_all_of_it(capsys: Capture) -> None:
    """People want the reason, whoever repairs it wants the place; neither gets more than one line."""
    for verbosity in (0, 2):
        set_up_logging(verbosity=verbosity)
        try:
            raise ValueError("broken")
        except ValueError:
            logger.exception("failed")
    short, long = capsys.readouterr().err.splitlines()
    assert short.endswith("failed: ValueError('broken')")
    assert "Traceback" in long
    assert "test_logging.py" in long


@pytest.mark.parametrize("library", ["mcp.client", "httpx2", "websockets.client", "squidbot.config"])
def test_libraries_warn_through_the_same_log(library: str, capsys: Capture) -> None:
    """One log, one format; what libraries chat about below a warning is theirs."""
    set_up_logging(verbosity=1)
    logging.getLogger(library).warning("careful with %s", "{this}")
    logging.getLogger(library).debug("chat")
    written = capsys.readouterr().err
    assert "WARNING  careful with {this}" in written
    assert "chat" not in written


def test_last_words_of_several_lines_stay_told_apart(capsys: Capture) -> None:
    """One line of the log, but not one sentence; and a server that is named already is not named twice."""
    set_up_logging()
    logger.bind(server="fs").warning("server 'fs' is gone: exit code 1\n    no licence\n\n    bye")
    assert capsys.readouterr().err.endswith("WARNING  server 'fs' is gone: exit code 1 | no licence | bye\n")
