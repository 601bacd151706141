"""Runs commands as the program does, in this process or in one of their own."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from squidbot.adapters.telemetry.logging import LIBRARIES
from squidbot.cli.app import main
from tests.fixtures.running import ROOT, Entry, plain_entry, world_command


@dataclass(frozen=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        document = self.json
        assert document.keys() == {"error"}
        assert document["error"].keys() == {"code", "message", "hint"}
        return document["error"]


Squidbot = Callable[..., Ran]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, so that no settings file is found by chance."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def squidbot(capfd: pytest.CaptureFixture[str]) -> Iterator[Squidbot]:
    """A command run in this process, with what it wrote; the log is given back as it was."""
    libraries = [logging.getLogger(name) for name in LIBRARIES]
    kept = [(library, library.handlers, library.propagate, library.level) for library in libraries]

    def run(*arguments: str) -> Ran:
        capfd.readouterr()
        code = main(list(arguments))
        captured = capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    yield run
    for library, handlers, propagate, level in kept:
        library.handlers, library.propagate = handlers, propagate
        library.setLevel(level)


@pytest.fixture
def program() -> Squidbot:
    """A command run as a process of its own."""

    def run(*arguments: str, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "squidbot", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            timeout=50,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def world(folder: Path) -> Path:
    """Settings with one server that has one of everything."""
    command, *args = world_command("stdio")
    return write_settings(folder, {"world": {"command": command, "args": args, "cwd": str(ROOT)}})


@pytest.fixture
def plain(folder: Path) -> Path:
    """Settings with a small, quick server; each of its starts adds a line to the file `starts`."""
    return write_settings(folder, {"plain": plain_entry("--starts", str(folder / "starts"))})


def write_settings(folder: Path, servers: dict[str, Entry], **more: Any) -> Path:
    path = folder / "squidbot.json"
    path.write_text(json.dumps({"tools": {"mcp_servers": servers}, **more}))
    return path


def starts(folder: Path) -> list[int]:
    """The process numbers that the quick server has had."""
    path = folder / "starts"
    return [int(line) for line in path.read_text().split()] if path.exists() else []
