"""The configuration files of other people's clients: squidbot goes in, and everything else stays."""

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from squidbot.config.clients import CLIENTS, ClientName, Way, entry_of, file_of, needs_token, snippet, write
from squidbot.config.imports import import_document
from squidbot.config.jsonc import parse_jsonc
from squidbot.core.domain.errors import ConfigError

WAY = Way(
    url="http://127.0.0.1:8765/mcp",
    token="sqb_abc_secret",
    command=("/opt/bin/squidbot", "serve", "--role", "designer"),
    env={"SQUIDBOT_HOME": "/srv/squidbot"},
)
JSON_CLIENTS: tuple[ClientName, ...] = tuple(client for client in CLIENTS if client != "codex")


def _read(client: ClientName, path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    document: dict[str, Any] = tomllib.loads(text) if client == "codex" else parse_jsonc(text).value
    return document


def _servers(client: ClientName, path: Path) -> dict[str, Any]:
    key = {"codex": "mcp_servers", "vscode": "servers"}.get(client, "mcpServers")
    servers: dict[str, Any] = _read(client, path)[key]
    return servers


@pytest.mark.requirement("G-09")
@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_finds_the_gateway_in_its_own_words(client: ClientName, tmp_path: Path) -> None:
    """A key that a client does not read is a gateway that is silently not there."""
    path = tmp_path / "deep" / "file"
    write(client, path, entry_of(client, WAY))
    entry = _servers(client, path)["squidbot"]
    bearer = {"Authorization": "Bearer sqb_abc_secret"}
    expected: dict[ClientName, dict[str, Any]] = {
        "claude-code": {"type": "http", "url": WAY.url, "headers": bearer},
        "vscode": {"type": "http", "url": WAY.url, "headers": bearer},
        "cursor": {"url": WAY.url, "headers": bearer},
        "gemini": {"httpUrl": WAY.url, "headers": bearer},
        "codex": {"url": WAY.url, "http_headers": bearer},
        "claude-desktop": {"command": WAY.command[0], "args": list(WAY.command[1:]), "env": dict(WAY.env)},
    }
    assert entry == expected[client]


@pytest.mark.requirement("G-09")
@pytest.mark.parametrize("client", [client for client in CLIENTS if needs_token(client)])
def test_a_file_with_a_token_is_for_its_owner_alone(client: ClientName, tmp_path: Path) -> None:
    """Whoever reads the token is the role."""
    path = tmp_path / "file"
    path.write_text("")
    path.chmod(0o644)
    write(client, path, entry_of(client, WAY))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.requirement("G-09")
@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_what_stands_in_a_json_file_stays_to_the_letter(client: ClientName, tmp_path: Path) -> None:
    """It is somebody's own file, with comments."""
    key = "servers" if client == "vscode" else "mcpServers"
    path = tmp_path / "file"
    path.write_text(
        f'{{\n  // mine\n  "theme": "dark",\n  "{key}": {{\n    "other": {{"command": "x"}}, // keep\n  }}\n}}\n'
    )
    write(client, path, entry_of(client, WAY))
    write(client, path, {**entry_of(client, WAY), "again": True})
    text = path.read_text()
    assert "// mine" in text
    assert '"other": {"command": "x"}, // keep' in text
    document = _read(client, path)
    assert document["theme"] == "dark"
    assert document[key].keys() == {"other", "squidbot"}
    assert document[key]["squidbot"]["again"] is True


@pytest.mark.requirement("G-09")
def test_what_stands_in_a_toml_file_stays_to_the_letter(tmp_path: Path) -> None:
    """Codex has its whole configuration in this file."""
    path = tmp_path / "config.toml"
    mine = '# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "x" # keep\n'
    path.write_text(mine)
    write("codex", path, entry_of("codex", WAY))
    assert path.read_text().startswith(mine)
    write("codex", path, {"url": "http://elsewhere/mcp"})
    assert path.read_text().startswith(mine)
    assert _servers("codex", path) == {"other": {"command": "x"}, "squidbot": {"url": "http://elsewhere/mcp"}}
    assert "secret" not in path.read_text()


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", "{ this is no JSON"),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("codex", "= nothing"),
        ("codex", 'mcp_servers = { squidbot = { url = "http://x/mcp" } }\n'),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(client: ClientName, text: str, tmp_path: Path) -> None:
    """Better nothing than half of somebody's configuration."""
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ConfigError, match="cannot be changed") as caught:
        write(client, path, entry_of(client, WAY))
    assert path.read_text() == text
    assert "--write" in str(caught.value.hint)
    assert "secret" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_what_is_printed_is_what_would_be_written(client: ClientName, tmp_path: Path) -> None:
    """Whoever copies it by hand gets the same."""
    path = tmp_path / "file"
    entry = entry_of(client, WAY)
    write(client, path, entry)
    assert json.loads(snippet(client, entry)) == _read(client, path)
    assert tomllib.loads(snippet("codex", entry_of("codex", WAY)))["mcp_servers"].keys() == {"squidbot"}


def test_what_we_write_for_others_we_can_read_ourselves(tmp_path: Path) -> None:
    """The same file is what `servers import` takes."""
    for client in ("claude-code", "cursor", "vscode", "claude-desktop"):
        assert "squidbot" in import_document(json.loads(snippet(client, entry_of(client, WAY)))).servers


def test_each_client_has_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Project files in the folder one stands in, personal ones in the home."""
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    files = {client: file_of(client, environ={}, cwd=tmp_path / "project") for client in CLIENTS}
    assert files["claude-code"] == tmp_path / "project/.mcp.json"
    assert files["cursor"] == tmp_path / "project/.cursor/mcp.json"
    assert files["vscode"] == tmp_path / "project/.vscode/mcp.json"
    assert files["codex"] == tmp_path / "me/.codex/config.toml"
    assert files["gemini"] == tmp_path / "me/.gemini/settings.json"
    assert files["claude-desktop"].name == "claude_desktop_config.json"
    assert file_of("codex", environ={"CODEX_HOME": "/elsewhere"}) == Path("/elsewhere/config.toml")
