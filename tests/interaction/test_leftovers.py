"""Many servers started and stopped many times: no process, no descriptor and no warning may be left."""

import os
from pathlib import Path

import pytest

from squidbot import MCPClient, MCPConfig
from tests.fixtures.running import plain_entry, until

pytestmark = pytest.mark.anyio

SERVERS = 30
ROUNDS = 20


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _marked(mark: str) -> list[int]:
    """Every process of the machine that carries `mark` in its environment, children of children included."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except (OSError, ProcessLookupError):
            continue
    return found


@pytest.mark.deadline(180)
@pytest.mark.requirement("B-01", "B-11", "B-12")
async def test_nothing_is_left_of_thirty_servers_that_were_started_and_stopped_twenty_times(tmp_path: Path) -> None:
    """A gateway lives for months: what leaks once a restart fills the machine."""
    starts = tmp_path / "starts"
    mark = f"LEFTOVER_MARK={tmp_path}"
    entry = {**plain_entry("--starts", str(starts)), "protocol": "legacy", "env": dict([mark.split("=", 1)])}
    config = MCPConfig.from_dict({"servers": {f"server-{number}": entry for number in range(SERVERS)}})
    descriptors = 0
    for round_ in range(ROUNDS):
        async with MCPClient(config) as client:
            connected = await client.connect_all()
            assert all(connected.values()), [client.status(name).error for name in connected]
            assert len(client.get_available_tools()) == 2 * SERVERS
            assert len(_marked(mark)) >= SERVERS
        await until(lambda: not _marked(mark), what="every process of the round to be gone", within=5)
        if round_ == 0:
            descriptors = _descriptors()  # what the first round opens for good (loops, libraries) is no leak
    assert abs(_descriptors() - descriptors) <= 2
    assert len(starts.read_text(encoding="ascii").splitlines()) == SERVERS * ROUNDS
