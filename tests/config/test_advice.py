"""What is allowed and still unwise: `doctor` must say it, and the shipped settings must give it nothing to say."""

import json
from pathlib import Path
from typing import Any

import pytest

from squidbot.config.advice import advice
from squidbot.config.builtin import DEFAULT_MCP_SERVERS
from squidbot.config.load import load_settings
from squidbot.config.packages import Package, packages_of
from squidbot.config.schema import Settings, ToolsSettings

ROOT = Path(__file__).resolve().parents[2]


def told(folder: Path, entry: dict[str, Any]) -> list[str]:
    """What is said of one server, with its place."""
    file = folder / "squidbot.json"
    file.write_text(json.dumps({"tools": {"mcp_servers": {"one": entry}}}))
    return [str(problem) for problem in advice(load_settings(file))]


@pytest.mark.parametrize(
    ("command", "args", "package"),
    [
        ("uvx", ["mcp-server-time"], Package("pypi", "mcp-server-time", None)),
        ("uvx", ["mcp-server-time==2026.1.1"], Package("pypi", "mcp-server-time", "2026.1.1")),
        ("uvx", ["mcp-server-time@2026.1.1", "--x"], Package("pypi", "mcp-server-time", "2026.1.1")),
        ("uvx", ["mcp-server-time@latest"], Package("pypi", "mcp-server-time", None)),
        ("uvx", ["--python", "3.12", "--from", "Some_Thing[x]>=1", "cmd"], Package("pypi", "some-thing", None)),
        ("/usr/bin/pipx", ["run", "--spec=a==1.0", "b"], Package("pypi", "a", "1.0")),
        ("uv", ["tool", "run", "a"], Package("pypi", "a", None)),
        ("npx", ["-y", "@scope/name@1.2.3", "arg"], Package("npm", "@scope/name", "1.2.3")),
        ("npx", ["-y", "@scope/name"], Package("npm", "@scope/name", None)),
        ("npx", ["name@^1.2.3"], Package("npm", "name", None)),
        ("npx.cmd", ["--package=name@1.0.0", "bin"], Package("npm", "name", "1.0.0")),
        ("npx", ["./local"], None),
        ("npx", ["-y"], None),
        ("uvx", ["--from", "git+https://example.com/x", "x"], None),
        ("python", ["-m", "thing"], None),
        ("uvx", ["-p", "3.12", "a"], Package("pypi", "a", None)),
        ("uv", ["run", "server.py"], None),
        ("uv", ["run", "--with", "a", "a"], Package("pypi", "a", None)),
        ("bunx", ["a"], Package("npm", "a", None)),
        ("bun", ["x", "a@1.0.0"], Package("npm", "a", "1.0.0")),
        ("pnpm", ["dlx", "a"], Package("npm", "a", None)),
        ("yarn", ["dlx", "-p", "a", "b"], Package("npm", "a", None)),
        ("npm", ["exec", "--", "a"], Package("npm", "a", None)),
        ("deno", ["run", "-A", "npm:a"], Package("npm", "a", None)),
        ("deno", ["run", "--config", "deno.json", "npm:@b/c@1.0.0/bin"], Package("npm", "@b/c", "1.0.0")),
        ("deno", ["run", "jsr:@b/c"], Package("jsr", "@b/c", None)),
        ("deno", ["run", "server.ts", "npm:a"], None),
        ("env", ["-i", "-u", "X", "A=b", "npx", "a"], Package("npm", "a", None)),
        ("/usr/bin/env", ["uvx", "a"], Package("pypi", "a", None)),
        ("env", ["A=b"], None),
        ("cmd", ["/c", "npx", "-y", "a"], Package("npm", "a", None)),
        ("C:\\node\\npx.CMD", ["a"], Package("npm", "a", None)),
        ("npx", ["owner/name"], None),
        ("npx", ["${PACKAGE}"], None),
    ],
)
def test_the_package_that_a_command_runs_is_told(command: str, args: list[str], package: Package | None) -> None:
    """Every way of running a package by name must be seen through."""
    assert packages_of(command, args) == ([] if package is None else [package])


def test_packages_that_are_to_be_there_as_well_are_told_too() -> None:
    """Their code runs just the same."""
    words = ["--with", "a[x,y]>=1,<2,b==1.0", "--with=c", "--from", "d==2.0", "e"]
    found = [Package("pypi", "a", None), Package("pypi", "b", "1.0"), Package("pypi", "c", None)]
    assert packages_of("uvx", words) == [*found, Package("pypi", "d", "2.0")]
    assert packages_of("uv", ["run", *words[:3], "server.py", "--with", "f"]) == found
    assert packages_of("npx", ["-y", "-p", "a@1.0.0", "-p", "b", "c"]) == [
        Package("npm", "a", "1.0.0"),
        Package("npm", "b", None),
    ]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "uvx", "args": ["mcp-server-time"]}, "without a version"),
        ({"command": "npx", "args": ["-y", "some-server"]}, "Pin it: some-server@VERSION"),
        ({"command": "uvx", "args": ["mcp-server-github"]}, "no package of this name exists on PyPI"),
        ({"command": "uvx", "args": ["mcp-server-brave-search"]}, "empty placeholder"),
        ({"command": "npx", "args": ["mcp-remote@0.1.15", "https://example.com"]}, "CVE-2025-6514"),
        ({"command": "npx", "args": ["postmark-mcp@1.0.16"]}, "copy all mail"),
        ({"command": "uvx", "args": ["mcp-server-git==2026.10.19"]}, "without --repository opens any repository"),
        ({"command": "mcp-server-git"}, "without --repository opens any repository"),
        ({"command": "bash", "args": ["-c", "server"]}, "goes through a shell"),
        ({"command": "server", "args": ["--api-key", "abcdef"]}, "args[1]: a secret is given as an argument"),
        ({"command": "server", "args": ["--token=abcdef"]}, "args[0]: a secret is given as an argument"),
        ({"command": "server", "args": ["ghp_" + "a" * 36]}, "args[0]: a secret is given as an argument"),
        ({"command": "env", "args": ["API_KEY=abcdef", "npx", "a@1.0.0"]}, "args[0]: a secret is given as an argument"),
        ({"command": "docker", "args": ["run", "-e", "GITHUB_TOKEN=abcdef", "a:1"]}, "args[2]: a secret is given"),
        ({"command": "server", "args": ["postgresql://me:abcdef@db.example.com/x"]}, "args[0]: a secret is given"),
        ({"command": "server", "args": ["https://example.com/?api_key=abcdef"]}, "args[0]: a secret is given"),
        ({"command": "env", "args": ["A=b", "npx", "thing"]}, "Pin it: thing@VERSION"),
        ({"command": "uv", "args": ["run", "--with", "thing", "x.py"]}, "Pin it: thing==VERSION"),
        ({"command": "deno", "args": ["run", "npm:thing"]}, "Pin it: thing@VERSION"),
        ({"command": "docker", "args": ["run", "mcp/git"]}, "runs the image 'mcp/git' without a version"),
        ({"command": "docker", "args": ["run", "-i", "--rm", "ghcr.io/a/b:latest"]}, "without a version"),
        ({"command": "podman", "args": ["run", "-it", "-e", "A=b", "--name", "c", "-p80:80", "a"]}, "the image 'a'"),
        ({"command": "docker", "args": ["--context", "c", "container", "run", "host:5000/a"]}, "'host:5000/a'"),
        ({"command": "npx", "args": ["git+https://example.com/a/b"]}, "no commit or tag is named"),
        ({"command": "npx", "args": ["-y", "github:a/b#main"]}, "Pin it: URL#COMMIT"),
        ({"command": "npx", "args": ["a/b"]}, "no commit or tag is named"),
        ({"command": "uvx", "args": ["--from", "git+https://example.com/a/b", "c"]}, "Pin it: URL@COMMIT"),
        ({"command": "uvx", "args": ["--from", "git+ssh://git@example.com/a/b.git@main", "c"]}, "Pin it: URL@COMMIT"),
        ({"command": "uvx", "args": ["--from", "c @ git+https://example.com/a/b", "c"]}, "Pin it: URL@COMMIT"),
        ({"url": "https://mcp.example.com/mcp?api_key=abcdef"}, "one.url: its query carries a secret"),
        ({"url": "https://mcp.example.com/mcp?x=ghp_" + "a" * 36}, "its query carries a secret"),
        ({"url": "https://abcdef@mcp.example.com/mcp"}, "it carries a password"),
        ({"url": "http://mcp.example.com/mcp"}, "plain http beyond this machine"),
        ({"url": "ws://mcp.example.com/mcp"}, "Use wss://"),
        ({"url": "https://user:word@mcp.example.com/mcp"}, "it carries a password"),
    ],
)
def test_what_is_unwise_is_told_with_its_place_and_a_way_out(tmp_path: Path, entry: dict[str, Any], words: str) -> None:
    """A finding that does not say where and what to do helps nobody."""
    found = told(tmp_path, entry)
    assert any(words in finding for finding in found), found
    assert all(finding.startswith("tools.mcp_servers.one.") for finding in found)
    assert not any("abcdef" in finding or "ghp_" in finding for finding in found)


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "uvx", "args": ["mcp-server-git==2026.10.19", "--repository", "/data"]},
        {"command": "npx", "args": ["-y", "mcp-remote@0.15.1", "https://example.com/mcp"]},
        {"command": "mcp-server-github", "args": []},
        {"command": "server", "args": ["--token", "--verbose"]},
        {"url": "http://127.0.0.1:9000/mcp"},
        {"url": "http://[::1]:9000/mcp"},
        {"url": "http://localhost/mcp"},
        {"url": "https://mcp.example.com/mcp"},
        {"command": "docker", "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/a/b:1.2.3", "serve"]},
        {"command": "docker", "args": ["run", "-v", "/a:/b", "host:5000/a@sha256:" + "0" * 64]},
        {"command": "docker", "args": ["run", "a:${TAG:-1.0}"]},
        {"command": "docker", "args": ["exec", "-i", "here", "server"]},
        {"command": "docker"},
        {"command": "npx", "args": ["-y", "github:a/b#0123456789abcdef"]},
        {"command": "npx", "args": ["git+https://example.com/a/b.git#v1.0"]},
        {"command": "uvx", "args": ["--from", "git+ssh://git@example.com/a/b@v1.2", "c"]},
        {"command": "uvx", "args": ["--from", "c @ git+https://example.com/a/b@0123456", "c"]},
        {"command": "uv", "args": ["run", "--with", "a==1.0", "server.py"]},
        {"command": "deno", "args": ["run", "-A", "npm:a@1.0.0"]},
        {"command": "env", "args": ["A=b", "server"]},
        {"command": "npx", "args": ["./local"]},
        {"command": "npx", "args": ["../local.git/server"]},
        {"command": "uvx", "args": ["whatever"], "enabled": False},
    ],
)
def test_what_is_wise_is_left_alone(tmp_path: Path, entry: dict[str, Any]) -> None:
    """A doctor that cries wolf is not heard."""
    assert told(tmp_path, entry) == []


def test_a_query_that_only_refers_to_a_secret_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some servers take their key nowhere else."""
    monkeypatch.setenv("KEY", "abcdef")
    assert told(tmp_path, {"url": "https://mcp.example.com/mcp?api_key=${KEY}&page=2"}) == []


def test_an_env_file_that_everybody_can_read_is_told(tmp_path: Path) -> None:
    """It holds the secrets that the settings so carefully do not."""
    (tmp_path / "one.env").write_text("A=b\n")
    (tmp_path / "one.env").chmod(0o644)
    found = told(tmp_path, {"command": "server", "env_file": "one.env"})
    assert any("everybody on this machine can read it" in finding for finding in found)
    (tmp_path / "one.env").chmod(0o600)
    assert told(tmp_path, {"command": "server", "env_file": "one.env"}) == []


@pytest.mark.requirement("A-06")
def test_the_shipped_settings_give_no_advice() -> None:
    """Whoever starts from ours starts well."""
    assert advice(load_settings(ROOT / "config.example.json")) == []
    own = Settings(tools=ToolsSettings(mcp_servers=dict(DEFAULT_MCP_SERVERS)))
    assert advice(own) == []
