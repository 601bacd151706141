"""From errors to exit codes."""

import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from squidbot.cli.errors import CommandError, explained
from squidbot.cli.output import Output
from squidbot.core.domain.errors import (
    ConfigError,
    InvalidArguments,
    MCPConnectionError,
    MCPProtocolError,
    MCPRequestRefused,
    Problem,
    RateLimited,
    SquidbotError,
    ToolNotPermitted,
    UnknownTool,
)
from squidbot.core.domain.redaction import Redactor


@pytest.mark.requirement("G-03")
@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (ConfigError("x"), "settings", 2),
        (UnknownTool("x"), "unknown_tool", 2),
        (InvalidArguments("x", [Problem("a", "is wrong")]), "invalid_arguments", 2),
        (click.UsageError("x"), "usage", 2),
        (click.ClickException("x"), "usage", 2),
        (ToolNotPermitted("x"), "not_permitted", 3),
        (RateLimited("x", retry_after=1), "limited", 3),
        (MCPConnectionError("x"), "unavailable", 4),
        (MCPRequestRefused("x"), "request_refused", 1),
        (MCPProtocolError("x"), "protocol", 1),
        (SquidbotError("x"), "failed", 1),
        (OSError(28, "No space left"), "failed", 1),
        (ZeroDivisionError("x"), "internal", 1),
        (KeyboardInterrupt(), "interrupted", 130),
        (click.Abort(), "interrupted", 130),
        (CommandError("x", code="exists"), "exists", 2),
    ],
)
def test_every_error_has_a_code_for_programs_and_one_for_shells(
    error: BaseException, code: str, exit_code: int
) -> None:
    """Scripts decide by these numbers whether to try again, to ask a person or to give up."""
    found = explained(error)
    assert (found.code, found.exit_code) == (code, exit_code)


def test_an_errors_hint_is_passed_on() -> None:
    """What to do is half of the message."""
    assert explained(UnknownTool("x", nearest=["y"])).hint == "Did you mean 'y'?"


def test_an_error_shows_no_secret_and_no_control_character(capfd: pytest.CaptureFixture[str]) -> None:
    """A server's last words often quote the token that it refused."""
    output = Output(as_json=False)
    output.redactor = redactor = Redactor({"s3cret"})
    assert output.fail(CommandError("bad \x1b[0m s3cret", code="failed", exit_code=1, hint="not s3cret")) == 1
    captured = capfd.readouterr()
    assert captured.out == ""
    mark = redactor.mark("s3cret")
    assert captured.err == f"error: bad \\x1b[0m {mark}\nhint:  not {mark}\n"


_INTERRUPTED_EARLY = """
import os, signal, sys
import squidbot.__main__

class Finder:
    def find_spec(self, name, *_):
        if name == "squidbot.cli.app":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(squidbot.__main__.main())
"""


@pytest.mark.requirement("G-03")
def test_ctrl_c_while_the_program_loads_is_no_traceback() -> None:
    """Whoever has mistyped is quick; an interrupt is one from the first moment on."""
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_EARLY], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@pytest.mark.requirement("G-03")
@pytest.mark.parametrize("closed", ["<&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_an_empty_one(folder: Path, closed: str) -> None:
    """Supervisors and shells start programs without one or the other; that is no fault of squidbot's."""
    (folder / "squidbot.json").write_text("{}")
    command = f"{shlex.quote(sys.executable)} -m squidbot agent {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 2
    assert "2>&-" in closed or "the request is empty" in done.stderr
