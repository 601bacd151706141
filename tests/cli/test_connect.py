"""`squidbot connect`: a client's own configuration, with a token that is good and seen once."""

import json
import stat
from pathlib import Path

import pytest

from squidbot.config.running import only_gateway
from tests.cli.conftest import Squidbot

pytestmark = pytest.mark.requirement("G-09")


@pytest.fixture(autouse=True)
def settings(plain: Path) -> Path:
    """Any settings will do; no server is started."""
    return plain


def _token(text: str) -> str:
    found: str = text.split("Bearer ")[1].split('"', maxsplit=1)[0]
    return found


def test_what_is_printed_holds_a_token_of_the_role_once(squidbot: Squidbot, home: Path) -> None:
    """The token is in the answer and nowhere else: not on stderr, not in the state folder."""
    ran = squidbot("connect", "cursor", "--role", "designer")
    assert ran.code == 0
    entry = json.loads(ran.out)["mcpServers"]["squidbot"]
    assert entry["url"] == "http://127.0.0.1:8765/mcp"
    token = _token(ran.out)
    assert ran.out.count(token) == 1
    assert token not in ran.err
    assert ".cursor/mcp.json" in ran.err
    for file in home.rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes()


def test_what_is_written_is_not_printed(squidbot: Squidbot, folder: Path) -> None:
    """A terminal is kept and shared more easily than a file of mode 0600."""
    ran = squidbot("connect", "claude-code", "--role", "designer", "--write", "--json")
    assert ran.code == 0
    path = folder / ".mcp.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert _token(path.read_text()) not in ran.out + ran.err
    assert ran.json["written"] is True
    assert ran.json["file"] == str(path)
    assert ran.json["entry"] is None
    assert ran.json["token_id"] in path.read_text()


def test_a_file_that_cannot_be_changed_costs_nothing(squidbot: Squidbot, folder: Path) -> None:
    """It stays as it was, and no token stays good that nobody has."""
    path = folder / ".mcp.json"
    path.write_text("{broken")
    ran = squidbot("connect", "claude-code", "--role", "designer", "--write", "--json")
    assert (ran.code, ran.error["code"]) == (2, "settings")
    assert path.read_text() == "{broken"
    assert [token["revoked"] for token in squidbot("tokens", "list", "--json").json] == [True]


def test_the_running_gateway_is_where_the_client_is_sent(squidbot: Squidbot, home: Path) -> None:
    """Wherever it really listens, not where the settings would have it."""
    with only_gateway(home / "state") as announce:
        announce("http://127.0.0.1:4321")
        ran = squidbot("connect", "vscode", "--role", "designer", "--json")
    assert ran.json["entry"]["url"] == "http://127.0.0.1:4321/mcp"


def test_a_client_that_only_starts_commands_gets_one_and_no_token(squidbot: Squidbot, plain: Path) -> None:
    """Claude Desktop: the same door over stdio, with the same settings and state."""
    ran = squidbot("--config", str(plain), "connect", "claude-desktop", "--role", "designer", "--json")
    entry = ran.json["entry"]
    assert entry["args"] == ["--config", str(plain), "serve", "--role", "designer"]
    assert "SQUIDBOT_HOME" in entry["env"]
    assert ran.json["token_id"] is None
    assert "Bearer" not in ran.out


@pytest.mark.parametrize("role", ["operator", "admin", "desinger"])
def test_what_is_no_role_gets_no_token(squidbot: Squidbot, role: str, folder: Path) -> None:
    """A person at the terminal and a right on the gateway are never a client's."""
    ran = squidbot("connect", "claude-code", "--role", role, "--write", "--json")
    assert ran.code == 2
    assert ran.error["code"] == "unknown_role"
    assert not (folder / ".mcp.json").exists()
