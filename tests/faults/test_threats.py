"""What hostile settings and hostile servers must not achieve."""

import json
from pathlib import Path

import pytest

from squidbot import MCPClient, MCPConfig
from squidbot.core.domain.errors import ConfigError
from tests.faults.measure import whole_log
from tests.faults.scene import CANARY, stdio_entry
from tests.fixtures.running import plain_entry

INJECTIONS = (
    "; touch {}",
    "$(touch {})",
    "`touch {}`",
    "\ntouch {}\n",
    "| touch {}",
    "&& touch {}",
    "' touch {} '",
    "${{IFS}}touch {}",
)


@pytest.mark.anyio
@pytest.mark.requirement("B-01")
@pytest.mark.parametrize("injection", INJECTIONS)
async def test_what_looks_like_shell_is_never_one(injection: str, tmp_path: Path) -> None:
    """Settings are copied from the internet; an argument is an argument and a command is a program."""
    marker = tmp_path / "marker"
    words = injection.format(marker)
    escaped = words.replace("$", "$$") if "${" in words else words
    entry = plain_entry()
    servers = {
        "args": {**entry, "args": [*entry["args"], "--starts", f"{tmp_path}/x{escaped}".replace("\n", " ")]},
        "env": {**entry, "env": {"WORDS": escaped}},
        "command": {"command": f"python3 {escaped}".replace("\n", " "), "startup_timeout": 2},
    }
    for name, server in servers.items():
        try:
            config = MCPConfig.from_dict({"servers": {name: server}})
        except ConfigError:
            continue  # refused at load is as good
        async with MCPClient(config) as client:
            await client.connect(name)
    assert not marker.exists()


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "python3\0", "args": []},
        {"command": "python3", "args": ["a\0b"]},
        {"command": "python3", "env": {"A": "b\0c"}},
        {"url": "file:///etc/passwd"},
        {"url": "javascript:alert(1)"},
        {"url": "ftp://127.0.0.1/"},
        {"url": "gopher://127.0.0.1/"},
        {"url": "http://127.0.0.1/", "headers": {"X": "a\r\nEvil: yes"}},
        {"url": "http://127.0.0.1/\r\nEvil: yes"},
    ],
    ids=str,
)
@pytest.mark.requirement("A-04")
def test_settings_that_could_only_be_an_attack_are_refused(entry: dict[str, object]) -> None:
    """What no honest entry has is caught before anything is started."""
    with pytest.raises(ConfigError):
        MCPConfig.from_dict({"servers": {"hostile": entry}})


@pytest.mark.anyio
@pytest.mark.requirement("B-01", "B-06")
async def test_a_server_knows_its_own_secrets_only_and_nobody_is_told_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that leaks all it knows must know little, and what it leaks must not reach the log or a model's error."""
    monkeypatch.setenv("OURS_TOKEN", "secret-of-the-house")
    servers = {
        "first": stdio_entry("leaks_environment", env={"FIRST_TOKEN": f"{CANARY}-first"}),
        "second": stdio_entry("leaks_environment", env={"SECOND_TOKEN": f"{CANARY}-second"}),
    }
    log: list[str] = []
    with whole_log(log):
        async with MCPClient(MCPConfig.from_dict({"servers": servers})) as client:
            assert all((await client.connect_all()).values())
            known = json.loads((await client.call_tool("second", "act", {"how": "answer"})).text)
            refused = await client.call_tool("second", "act")
            gone = await client.call_tool("second", "act", {"how": "exit"})
            status = client.status("second")
    assert "FIRST_TOKEN" not in known
    assert "OURS_TOKEN" not in known
    told = [refused.text, gone.text, status.error or "", *log]
    assert [text for text in told if CANARY in text or "secret-of-the-house" in text] == []
