"""Which era a server speaks is found out quickly, whatever it does with a question it never heard of."""

import time
from pathlib import Path

import pytest

from squidbot import MCPClient
from tests.fixtures.meeting import meeting
from tests.fixtures.running import Entry, plain_entry, running
from tests.fixtures.serve import TransportOnNetwork
from tests.interaction.conftest import NETWORK

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("B-05")]

PATIENCE = 5.0
"""Seconds: about one for a person, and what a busy machine adds; the plain SDK takes ten on any machine."""


async def _timed(entry: Entry, state: Path | None = None) -> tuple[float, str | None]:
    """How long it takes to connect and call, and the revision that was agreed on."""
    began = time.monotonic()
    async with meeting(entry, state=state) as client:
        assert await _works(client)
        return time.monotonic() - began, client.status("world").protocol


async def _works(client: MCPClient) -> bool:
    return (await client.call_tool("world", "echo", {"text": "yes"})).text == "yes"


def _noted(file: Path) -> list[str]:
    return file.read_text(encoding="ascii").split()


async def test_a_server_that_ignores_unknown_methods_costs_about_a_second_once(tmp_path: Path) -> None:
    """Whoever waits for an answer that never comes waits ten seconds with the plain SDK, every time."""
    heard = tmp_path / "heard"
    entry = plain_entry("--unknown", "ignore", "--heard", str(heard))
    seconds, protocol = await _timed(entry, tmp_path / "state")
    assert seconds < PATIENCE
    assert protocol == "2025-11-25"
    assert _noted(heard).count("server/discover") == 1
    await _timed(entry, tmp_path / "state")
    assert _noted(heard).count("server/discover") == 1, "the verdict was not remembered"


async def test_a_server_that_exits_on_unknown_methods_is_started_afresh_and_remembered(tmp_path: Path) -> None:
    """The plain SDK cannot connect to it at all unless it is told the era."""
    starts = tmp_path / "starts"
    entry = plain_entry("--unknown", "exit", "--starts", str(starts))
    seconds, protocol = await _timed(entry, tmp_path / "state")
    assert seconds < PATIENCE
    assert protocol == "2025-11-25"
    assert len(_noted(starts)) == 2
    await _timed(entry, tmp_path / "state")
    assert len(_noted(starts)) == 3, "the verdict was not remembered"


async def test_a_server_that_starts_slowly_is_not_taken_for_one_that_is_silent(tmp_path: Path) -> None:
    """A slow start says nothing about the era: it must neither be killed nor be remembered wrongly."""
    starts = tmp_path / "starts"
    entry = plain_entry("--delay", "3", "--starts", str(starts))
    _, protocol = await _timed(entry, tmp_path / "state")
    assert protocol == "2025-11-25"
    assert len(_noted(starts)) == 1, "it was started twice"


async def test_a_verdict_that_no_longer_holds_is_dropped(tmp_path: Path) -> None:
    """A server that was updated to the new era, or back, must not be locked out by our memory."""
    script = tmp_path / "server.py"
    entry = {"command": "sh", "args": [str(script)]}
    with running("stdio", "--legacy-only") as old, running("stdio") as new:
        _launch(script, old)
        assert (await _timed(entry, tmp_path / "state"))[1] == "2025-11-25"
        _launch(script, plain_entry("--unknown", "exit"))
        assert (await _timed(entry, tmp_path / "state"))[1] == "2025-11-25"
        (tmp_path / "state2").mkdir()
        _launch(script, new)
        assert (await _timed(entry, tmp_path / "state2"))[1] == "2026-07-28"
        _launch(script, old)
        assert (await _timed(entry, tmp_path / "state2"))[1] == "2025-11-25"


def _launch(script: Path, entry: Entry) -> None:
    place = f"cd {entry['cwd']} && " if "cwd" in entry else ""
    script.write_text(f"{place}exec {entry['command']} {' '.join(entry['args'])}\n", encoding="utf-8")


@pytest.mark.parametrize("transport", ["stdio", *NETWORK])
@pytest.mark.parametrize("options", [(), ("--legacy-only",)], ids=["both eras", "handshake only"])
async def test_the_newest_era_that_both_sides_know_is_found_by_itself(
    transport: TransportOnNetwork, options: tuple[str, ...]
) -> None:
    """Nobody should have to know which era a server speaks."""
    with running(transport, *options) as entry:
        _, protocol = await _timed(entry)
    assert protocol == ("2025-11-25" if options else "2026-07-28")
