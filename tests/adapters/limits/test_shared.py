"""Limits that commands count together: one after another, at once, and whatever became of the file."""

import subprocess
import sys
from pathlib import Path

import pytest

from squidbot.adapters.limits.shared import SharedRateLimiter
from squidbot.core.domain.errors import RateLimited
from squidbot.core.domain.limits import Limit
from squidbot.core.domain.tools import ToolId
from tests.fakes.door import FakeClock

pytestmark = [pytest.mark.requirement("E-07"), pytest.mark.anyio]

READ = ToolId("files", "read_file")
THREE = Limit(role="qa", rate=0.1, burst=3)
_TAKER = """
import anyio, sys
from pathlib import Path
from squidbot.adapters.limits.shared import SharedRateLimiter
from squidbot.adapters.system.clock import SystemClock
from squidbot.core.domain.errors import RateLimited
from squidbot.core.domain.limits import Limit
from squidbot.core.domain.tools import ToolId

async def main():
    limiter = SharedRateLimiter([Limit(role="qa", rate=1/3600, burst=100)], SystemClock(), file=Path(sys.argv[1]))
    passed = 0
    for _ in range(80):
        try:
            await limiter.acquire("qa", ToolId("files", "read_file"))
            passed += 1
        except RateLimited:
            pass
    print(passed)

anyio.run(main)
"""


async def passes(limiter: SharedRateLimiter) -> bool:
    try:
        permit = await limiter.acquire("qa", READ)
    except RateLimited:
        return False
    await permit.release()
    return True


async def test_a_command_finds_what_those_before_it_took(tmp_path: Path) -> None:
    """Whoever starts squidbot anew for each call has no more calls for it."""
    clock, file = FakeClock(), tmp_path / "limits.json"
    assert [await passes(SharedRateLimiter([THREE], clock, file=file)) for _ in range(4)] == [True, True, True, False]
    clock.now += 10
    assert [await passes(SharedRateLimiter([THREE], clock, file=file)) for _ in range(2)] == [True, False]


async def test_what_is_full_again_takes_no_room(tmp_path: Path) -> None:
    """The file does not grow with every role that ever called."""
    clock, file = FakeClock(), tmp_path / "limits.json"
    await passes(SharedRateLimiter([THREE], clock, file=file))
    clock.now += 1_000
    await SharedRateLimiter([Limit(role="dev", rate=0.1, burst=2)], clock, file=file).acquire("dev", READ)
    assert "qa" not in file.read_text()


def test_commands_at_once_let_through_no_more_than_one_would(tmp_path: Path) -> None:
    """Four processes, one bucket, to the last call."""
    command = [sys.executable, "-c", _TAKER, str(tmp_path / "limits.json")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert sum(int(process.communicate(timeout=50)[0]) for process in running) == 100


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"boot": "another start", "full_at": {"x": 1e18}}', '{"boot": 1, "full_at": []}']
)
async def test_a_file_that_says_nothing_of_today_is_begun_anew(tmp_path: Path, text: str) -> None:
    """After a restart of the machine its clock begins anew, and a damaged count locks nobody out."""
    file = tmp_path / "limits.json"
    file.write_text(text)
    limiters = [SharedRateLimiter([THREE], FakeClock(), file=file) for _ in range(4)]
    assert [await passes(limiter) for limiter in limiters] == [True, True, True, False]


async def test_without_a_file_a_command_counts_for_itself(tmp_path: Path) -> None:
    """A limit that cannot be shared is still one."""
    limiter = SharedRateLimiter([THREE], FakeClock(), file=tmp_path / "nowhere" / "limits.json")
    assert [await passes(limiter) for _ in range(4)] == [True, True, True, False]
