"""Runs the git program: without the machine's settings, without questions, with a deadline."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

DEADLINE = 30.0
"""Seconds for one command; the practice repository is small, so whatever takes longer hangs."""


class GitFailed(Exception):
    """git ended with an error; the message is what it said."""

    def __init__(self, command: str, code: int, said: str) -> None:
        super().__init__(f"git {command} failed: {said.strip() or f'exit code {code}'}")
        self.code = code


def git(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    fine: tuple[int, ...] = (0,),
) -> bytes:
    """What a git command says on stdout. Raises GitFailed when it ends with a code that is not `fine`."""
    return run(folder, *arguments, stdin=stdin, env=env, fine=fine).stdout


def run(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    fine: tuple[int, ...] = (0,),
) -> subprocess.CompletedProcess[bytes]:
    """Like `git`, with the exit code."""
    try:
        ended = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            input=stdin,
            capture_output=True,
            timeout=DEADLINE,
            check=False,
            env=_environment() | dict(env or {}),
        )
    except FileNotFoundError:
        raise GitFailed(arguments[0], 127, "the git program is not installed, or not on the PATH") from None
    except subprocess.TimeoutExpired:
        raise GitFailed(arguments[0], 124, f"it did not end within {DEADLINE:g} s") from None
    if ended.returncode not in fine:
        raise GitFailed(arguments[0], ended.returncode, ended.stderr.decode(errors="replace"))
    return ended


def _environment() -> dict[str, str]:
    """Ours, but for what would make git look elsewhere or behave otherwise."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
        "TZ": "UTC",
    }
