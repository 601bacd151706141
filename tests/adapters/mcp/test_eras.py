"""Which era a server speaks: found out by asking, within a second, and remembered until it proves wrong."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from squidbot import MCPClient, MCPConfig
from squidbot.adapters.mcp import eras
from tests.adapters.mcp.processes import messages, scripted
from tests.adapters.mcp.test_session import DISCOVERED, MODERN

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("B-05")]

REFUSED = [{"error": {"code": -32600, "message": "not before tea"}}]


async def _protocol(entry: Mapping[str, Any], state: Path | None = None) -> str | None:
    """The revision that is agreed on."""
    async with MCPClient(MCPConfig.from_dict({"servers": {"s": entry}}), state=state) as client:
        with anyio.fail_after(20):
            assert await client.connect("s"), client.status("s").error
        assert (await client.call_tool("s", "act")).text == "done"
        return client.status("s").protocol


async def _failure(entry: Mapping[str, Any]) -> str:
    """Why it cannot be connected."""
    config = MCPConfig.from_dict({"servers": {"s": {"max_retries": 0, **entry}}})
    async with MCPClient(config) as client:
        with anyio.fail_after(20):
            assert not await client.connect("s")
        return str(client.status("s").error)


def _opened(heard: Path) -> list[str]:
    return [message["method"] for message in messages(heard) if message["method"] in ("server/discover", "initialize")]


@pytest.mark.parametrize(
    ("script", "protocol", "asked"),
    [
        ({}, "2025-06-18", ["server/discover", "initialize"]),
        (MODERN, "2026-07-28", ["server/discover"]),
        ({"server/discover": []}, "2025-06-18", ["server/discover", "initialize"]),
        ({"server/discover": [{"result": {}}]}, "2025-06-18", ["server/discover", "initialize"]),
        (
            {"server/discover": [{"result": {**DISCOVERED, "supportedVersions": ["2099-01-01"]}}]},
            "2025-06-18",
            ["server/discover", "initialize"],
        ),
        (
            {"server/discover": [{"error": {"code": -32022, "message": "no", "data": {"supported": 7}}}]},
            "2025-06-18",
            ["server/discover", "initialize"],
        ),
    ],
    ids=["refuses the question", "both sides are modern", "ignores it", "answers nonsense", "newer than us", "no data"],
)
async def test_the_era_is_found_out_by_asking_and_remembered(
    tmp_path: Path, script: dict[str, Any], protocol: str, asked: list[str]
) -> None:
    """Nobody should have to know, and nobody should wait for it twice."""
    heard = tmp_path / "heard"
    entry = scripted(script, heard, protocol="auto")
    assert await _protocol(entry, tmp_path) == protocol
    assert _opened(heard) == asked
    heard.unlink()
    assert await _protocol(entry, tmp_path) == protocol
    assert _opened(heard) == [asked[-1]], "the verdict was not remembered"


@pytest.mark.parametrize(("protocol", "asked"), [("legacy", ["initialize"]), ("modern", ["server/discover"])])
async def test_an_era_of_the_settings_is_not_doubted(tmp_path: Path, protocol: str, asked: list[str]) -> None:
    """Whoever knows better is believed, and pays for no question."""
    heard = tmp_path / "heard"
    await _protocol(scripted(MODERN, heard, protocol=protocol))
    assert _opened(heard) == asked


async def test_a_server_that_exits_at_the_question_is_started_afresh_with_the_handshake(tmp_path: Path) -> None:
    """It said nothing wrong; it only never heard of the question."""
    heard = tmp_path / "heard"
    entry = scripted({"server/discover": [{"exit": 1}]}, heard, protocol="auto")
    assert await _protocol(entry, tmp_path) == "2025-06-18"
    assert _opened(heard) == ["server/discover", "initialize"]


async def test_a_refused_handshake_is_the_reason_although_the_question_was_never_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A person wants to read what the server said, not that thirty seconds went by."""
    monkeypatch.setattr(eras, "_HEAD_START", 0.1)
    monkeypatch.setattr(eras, "_LAST_CHANCE", 0.3)
    began = time.monotonic()
    failure = await _failure(scripted({"server/discover": [], "initialize": REFUSED}, protocol="auto"))
    assert "it refused the opening: not before tea" in failure
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": {"code": -1, "message": "not today"}}, "it refused the opening: not today"),
        ({"result": None}, "its result is no object"),
        ({"result": {}}, "no valid answer"),
        (
            {
                "result": {
                    "protocolVersion": "1999-01-01",
                    "capabilities": {},
                    "serverInfo": {"name": "x", "version": ""},
                }
            },
            "Unsupported protocol version from the server: 1999-01-01",
        ),
        ({"raw": '{"jsonrpc": "2.0", "id": 5, "result": {}}\n'}, "it did not answer within 0.5 s"),
        ({"raw": "what?\n"}, "it did not answer within 0.5 s"),
        ({"raw": '{"jsonrpc": "2.0", "id": $id, "result"\n'}, "cannot be read"),
        ({"exit": 4}, "it exited with code 4"),
    ],
    ids=["error", "null", "empty", "wrong version", "wrong id", "noise", "cut off", "exit"],
)
async def test_a_broken_opening_is_an_error_in_words_and_never_a_hang(answer: Any, words: str) -> None:
    """Half of these make other clients wait for ever."""
    assert words in await _failure(scripted({"initialize": [answer]}, startup_timeout=0.5))


async def test_a_revision_older_than_the_settings_demand_is_refused() -> None:
    """A server that was downgraded by whoever sits in between must not pass in silence."""
    failure = await _failure(scripted({}, min_protocol="2025-11-25"))
    assert "it speaks revision 2025-06-18, older than the 2025-11-25 that `min_protocol` demands" in failure
    assert await _protocol(scripted({}, min_protocol="2025-06-18")) == "2025-06-18"
