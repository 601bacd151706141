"""Files that other tools already have are read as they are."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from squidbot.config.imports import import_document
from squidbot.config.load import load_settings
from squidbot.config.schema import Settings
from squidbot.core.domain.errors import ConfigError


def load(folder: Path, document: dict[str, Any], *, name: str, **environ: str) -> Settings:
    path = folder / name
    path.write_text(yaml.safe_dump(document) if path.suffix == ".yaml" else json.dumps(document))
    return load_settings(path, environ=environ)


@pytest.mark.requirement("A-05")
def test_a_file_with_mcp_servers_of_desktop_clients_is_read(tmp_path: Path) -> None:
    """Claude Desktop, Claude Code and Cursor share the shape."""
    document = {
        "mcpServers": {
            "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": {}},
            "remote": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "events": {"type": "sse", "url": "https://h/sse"},
            "socket": {"type": "ws", "url": "wss://h"},
            "gemini": {"httpUrl": "https://h/mcp", "trust": True},
            "off": {"command": "x", "disabled": True, "alwaysAllow": ["a"]},
        },
        "globalShortcut": "Ctrl+Space",
    }
    loaded = load(tmp_path, document, name=".mcp.json", TOKEN="tttt")
    servers = loaded.mcp.servers
    assert {name: server.transport for name, server in servers.items()} == {
        "memory": "stdio", "remote": "http", "events": "sse", "socket": "websocket", "gemini": "http", "off": "stdio",
    }  # fmt: skip
    assert servers["remote"].headers == {"Authorization": "Bearer tttt"}
    assert not servers["off"].enabled
    assert loaded.notes == (
        "of the server 'gemini' is left out what squidbot has no use for: trust",
        "of the server 'off' is left out what squidbot has no use for: alwaysAllow",
    )


@pytest.mark.requirement("A-05")
def test_an_editors_file_with_inputs_and_an_env_file_is_read(tmp_path: Path) -> None:
    """What the editor would ask a person for comes from the environment here."""
    (tmp_path / ".env").write_text("REGION=eu\n")
    document = {
        "inputs": [{"id": "github-token", "type": "promptString"}, {"id": "unused", "type": "promptString"}],
        "servers": {
            "github": {
                "type": "stdio", "command": "gh-mcp", "args": ["--region", "${REGION}", "${workspaceFolder}"],
                "env": {"TOKEN": "${input:github-token}"}, "envFile": ".env",
            }
        },
    }  # fmt: skip
    loaded = load(tmp_path, document, name="mcp.json", GITHUB_TOKEN="gggg", PWD="/w")
    server = loaded.mcp.servers["github"]
    assert (server.args, server.env) == (["--region", "eu", "/w"], {"TOKEN": "gggg"})
    assert loaded.notes == (
        "the server 'github' asks for the input 'github-token': set the variable 'GITHUB_TOKEN'",
        "no server uses the input 'unused'",
    )


@pytest.mark.requirement("A-05")
@pytest.mark.parametrize("stale", ["/somewhere/else", None])
def test_the_folder_of_an_editors_workspace_is_the_one_we_are_in(
    stale: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that starts us in a folder seldom says so in `PWD`; and where we are is no secret to be blanked."""
    monkeypatch.chdir(tmp_path)
    if stale is None:
        monkeypatch.delenv("PWD", raising=False)
    else:
        monkeypatch.setenv("PWD", stale)
    entry = {"command": "x", "args": ["${workspaceFolder}/src"], "envFile": "${workspaceFolder}/.env"}
    (tmp_path / ".env").write_text("A=1\n")
    (tmp_path / "mcp.json").write_text(json.dumps({"servers": {"s": entry}}))
    server = load_settings(tmp_path / "mcp.json").mcp.servers["s"]
    assert server.args == [f"{tmp_path}/src"]
    assert str(tmp_path) not in server.secrets


@pytest.mark.requirement("A-05")
def test_an_agent_file_with_tools_of_type_mcp_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A package is started by what its registry has; one that nobody owns is never run."""
    tools = [
        {"type": "mcp", "server": "mcp-server-git", "args": ["--repository", "."]},
        {"type": "mcp", "server": "@modelcontextprotocol/server-memory"},
        {"type": "mcp", "server": "https://h/mcp", "name": "remote"},
        {"type": "mcp", "server": "mcp-server-filesystem", "config": {"a": 1}},
        {"type": "mcp", "name": "own", "command": "python", "args": ["s.py"]},
        {"type": "mcp", "server": "mcp-server-git"},
        {"type": "function", "name": "f"},
        "shell",
    ]
    with caplog.at_level(logging.WARNING, "squidbot.config"):
        servers = load(tmp_path, {"name": "me", "tools": tools}, name="agent.yaml").mcp.servers
    assert {name: (server.command, server.args) for name, server in servers.items() if name != "filesystem"} == {
        "git": ("uvx", ["mcp-server-git", "--repository", "."]),
        "memory": ("npx", ["-y", "@modelcontextprotocol/server-memory"]),
        "remote": (None, []),
        "own": ("python", ["s.py"]),
        "git-5": ("uvx", ["mcp-server-git"]),
    }
    assert servers["filesystem"].args == ["-P", "-m", "squidbot.servers.filesystem"]
    assert servers["filesystem"].config == {"a": 1}
    assert (
        "nobody owns the package 'mcp-server-filesystem'; the built-in server 'filesystem' takes its place"
        in caplog.text
    )
    assert "tools[6] is left out: it is 'function', not of type 'mcp'" in caplog.text
    assert "tools[7] is left out" in caplog.text


@pytest.mark.requirement("A-05")
def test_a_role_mapping_file_is_read(tmp_path: Path) -> None:
    """The file is the whole truth about its roles, so they replace shipped ones."""
    document = {
        "version": "1.0",
        "mcp_servers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "description": "Git"}},
        "roles": {
            "tester": {"description": "Tests", "tools": {"git": ["git_status"]}},
            "writer": {"mcp_servers": {"git": {"tools": ["git_log"]}}},
            "plain": {"git": ["git_diff"]},
            "listed": {"servers": [{"name": "git", "tools": ["git_show"]}, {"server": "jira", "allowed_tools": ["x"]}]},
            "lost": {"tools": {"nowhere": ["x"]}},
        },
    }
    loaded = load(tmp_path, document, name="tool_mapping.yaml")
    granted = {
        role: {server: [grant.tool for grant in grants] for server, grants in body.tools.items()}
        for role, body in loaded.roles.items()
    }
    assert granted == {
        "tester": {"git": ["git_status"]}, "writer": {"git": ["git_log"]}, "plain": {"git": ["git_diff"]},
        "listed": {"git": ["git_show"], "jira": ["x"]}, "lost": {"nowhere": ["x"]},
    }  # fmt: skip
    assert all(role.replace for role in loaded.roles.values())
    assert loaded.notes == ("the role 'lost' names the server 'nowhere', which the file does not define",)


@pytest.mark.requirement("A-05")
def test_names_outside_the_pattern_are_mapped_with_a_note() -> None:
    """A name of ours goes into tool names, file names and urls."""
    imported = import_document(
        {"mcpServers": {"My Server!": {"command": "a"}, "My-Server": {"command": "b"}, "é": {"command": "c"}}}
    )
    assert {name: entry["command"] for name, entry in imported.servers.items()} == {
        "My-Server": "a",
        "My-Server-2": "b",
        "server": "c",
    }
    assert len(imported.notes) == 3
    assert imported.notes[0].startswith("the server 'My Server!' is called 'My-Server' here")


@pytest.mark.requirement("A-05", "A-04")
def test_a_report_on_another_tools_file_has_that_files_paths(tmp_path: Path) -> None:
    """The reader has never heard of ours."""
    with pytest.raises(ConfigError, match=r"mcpServers\.a\.command: found a number; expected a string \(line 1\)"):
        load(tmp_path, {"mcpServers": {"a": {"command": 3}}}, name="m.json")
    with pytest.raises(ConfigError, match=r"servers\.a\.command: the variable 'X' is not set"):
        load(tmp_path, {"servers": {"a": {"command": "${X}"}}}, name="m.json")
    with pytest.raises(ConfigError, match=r"mcpServers: found a list; expected an object"):
        load(tmp_path, {"mcpServers": []}, name="m.json")
    with pytest.raises(ConfigError, match=r"mcpServers\.a: found a string|mcpServers\.a: found 'x'"):
        load(tmp_path, {"mcpServers": {"a": "x"}}, name="m.json")


@pytest.mark.requirement("A-05", "A-06")
def test_a_built_in_that_does_not_ship_yet_is_left_out_of_an_agent_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Better a note than a package that nobody owns."""
    monkeypatch.setattr("squidbot.config.imports.builtin_entries", dict)
    imported = import_document({"tools": [{"type": "mcp", "server": "mcp-server-github"}]})
    assert imported.servers == {}
    assert imported.notes[-1] == "tools[0] is left out: the built-in for 'mcp-server-github' does not ship yet"


def test_a_role_that_names_a_server_and_no_tools_is_granted_nothing() -> None:
    """What is not named is refused, and the person hears of it."""
    imported = import_document({"mcp_servers": [{"name": "git", "command": "x"}], "roles": {"r": {"servers": ["git"]}}})
    assert imported.roles["r"]["tools"] == {"git": []}
    assert imported.notes == ["the role 'r' names the server 'git' and none of its tools: nothing is granted"]


def test_what_is_no_known_file_is_said_to_be_none() -> None:
    """With the shapes that are known."""
    with pytest.raises(ConfigError, match="no file that can be imported") as caught:
        import_document({"foo": 1})
    assert "mcpServers" in str(caught.value.hint)
