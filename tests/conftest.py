"""What holds for every test: asyncio, a home of its own, no settings of the machine's, and a deadline."""

import faulthandler
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TextIO

import hypothesis
import pytest

hypothesis.settings.register_profile("squidbot", deadline=None)
hypothesis.settings.load_profile("squidbot")
"""A machine that is busy is no fault of the code: a test has the deadline below, an example has none."""

DEADLINE = 60.0
"""Seconds for one test, unless `@pytest.mark.deadline(seconds)` says otherwise."""

GRACE = 30.0
"""Seconds more, after which a test that cannot even be interrupted ends the run with all its stacks."""

KEPT = frozenset({"SQUIDBOT_REQUIRE_ALL"})


LAST_WORDS = pytest.StashKey[TextIO]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"deadline(seconds): how long this test may take, instead of {DEADLINE:g} s")
    # The true stderr, while nothing is captured yet: what is said when the run is ended must be seen.
    config.stash[LAST_WORDS] = os.fdopen(os.dup(2), "w")


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[LAST_WORDS].close()


@pytest.fixture
def anyio_backend() -> str:
    """squidbot is asyncio's alone."""
    return "asyncio"


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder and a home for this test alone; nothing that the machine's owner set reaches it."""
    folder = tmp_path_factory.mktemp("home")
    for name in os.environ:
        ours = name.startswith(("SQUIDBOT_", "MCP_", "XDG_")) and name not in KEPT
        if ours or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("SQUIDBOT_HOME", str(folder / "state"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder


@pytest.fixture(autouse=True)
def watchdog(request: pytest.FixtureRequest) -> Iterator[None]:
    """End a test that hangs, so that one hang is one failure and not a silent CI."""
    marker = request.node.get_closest_marker("deadline")
    seconds: float = marker.args[0] if marker else DEADLINE

    def give_up(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"the test took longer than its {seconds:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + GRACE, exit=True, file=request.config.stash[LAST_WORDS])
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
