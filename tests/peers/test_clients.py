"""Other people's clients meet the gateway: each lists the tools of its token's role, and calls one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.gateway import GatewayProcess, gateway
from tests.fixtures.needs import peer
from tests.fixtures.running import ROOT, plain_entry
from tests.peers.install import PeerMissing, node_file, node_program, python_program

pytestmark = [pytest.mark.peers, pytest.mark.requirement("G-01", "G-09"), pytest.mark.deadline(240)]

ROLE = "backend_developer"
PATIENCE = 100.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One gateway for all of them: a server whose tools one role has, and one that it has not."""
    folder = tmp_path_factory.mktemp("gateway")
    servers = {"plain": plain_entry(), "closed": plain_entry()}
    document = {"tools": {"mcp_servers": servers}, "roles": {ROLE: {"tools": {"plain": ["*"]}}}}
    with gateway(folder, document) as process:
        yield process


@pytest.fixture(scope="module")
def token(running: GatewayProcess) -> str:
    return running.token(ROLE, "peers")


def _run(command: list[str], *, home: Path, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """What a program says on stdout; it has a home of its own and no way out."""
    given = {
        "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "NO_COLOR": "1",
        **(env or {}),
    }
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=PATIENCE, env=given, cwd=home, check=False
    )
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _inspector(url: str, token: str, *options: str) -> list[str]:
    program = peer(lambda: node_program("@modelcontextprotocol/inspector", environment="clients"))
    return [
        *program,
        "--cli",
        url,
        "--transport",
        "http",
        "--header",
        f"Authorization: Bearer {token}",
        *options,
    ]


def test_mcp_inspector_lists_and_calls(running: GatewayProcess, token: str, tmp_path: Path) -> None:
    """The protocol's own tool for trying servers."""
    url = f"{running.url}/mcp"
    listed = json.loads(_run(_inspector(url, token, "--method", "tools/list"), home=tmp_path))
    names = {tool["name"] for tool in listed["tools"]}
    assert "mcp_plain_echo" in names
    assert not any(name.startswith("mcp_closed") for name in names)
    call = ("--method", "tools/call", "--tool-name", "mcp_plain_echo", "--tool-arg", "text=ten arms")
    called = json.loads(_run(_inspector(url, token, *call), home=tmp_path))
    assert called["content"][0]["text"] == "ten arms"
    own = json.loads(_run(_inspector(f"{url}/plain", token, "--method", "tools/list"), home=tmp_path))
    assert {tool["name"] for tool in own["tools"]} == {"echo", "pid"}


def test_mcp_inspector_is_told_that_a_wrong_token_is_wrong(running: GatewayProcess, tmp_path: Path) -> None:
    """Its exit code 3 means that a sign-in is required."""
    command = _inspector(f"{running.url}/mcp", "sqb_000000000000_wrong", "--method", "tools/list")
    env = {**os.environ, "HOME": str(tmp_path), "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=env, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "mcp_plain_echo" not in done.stdout


def test_fastmcp_lists_and_calls(running: GatewayProcess, token: str, tmp_path: Path) -> None:
    """The client of the most used framework, which speaks the stateless era."""
    program = peer(lambda: python_program("fastmcp", "fastmcp"))
    url = f"{running.url}/mcp"
    listed = _run([*program, "list", url, "--auth", token, "--json"], home=tmp_path)
    assert "mcp_plain_echo" in listed
    assert "mcp_closed" not in listed
    called = _run([*program, "call", url, "mcp_plain_echo", "text=ten arms", "--auth", token], home=tmp_path)
    assert "ten arms" in called


def _lines(*messages: Mapping[str, Any]) -> str:
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def test_mcp_remote_bridges_from_stdio(running: GatewayProcess, token: str, tmp_path: Path) -> None:
    """What people put between an old client and a server that wants a header."""
    program = peer(lambda: node_program("mcp-remote", environment="clients"))
    command = [*program, f"{running.url}/mcp", "--allow-http", "--transport", "http-only"]
    command += ["--header", f"Authorization: Bearer {token}"]
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    env = {**os.environ, "HOME": str(tmp_path), "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(_lines({"id": 1, "method": "initialize", "params": client}))
            process.stdin.flush()
            opened = json.loads(process.stdout.readline())
            assert opened["result"]["protocolVersion"] == "2025-06-18"
            call = {"name": "mcp_plain_echo", "arguments": {"text": "ten arms"}}
            process.stdin.write(
                _lines(
                    {"method": "notifications/initialized"},
                    {"id": 2, "method": "tools/list"},
                    {"id": 3, "method": "tools/call", "params": call},
                )
            )
            process.stdin.flush()
            answers: dict[int, Any] = {}
            while len(answers) < 2:
                message = json.loads(process.stdout.readline())
                if message.get("id") is not None:
                    answers[message["id"]] = message
            assert {tool["name"] for tool in answers[2]["result"]["tools"]} == {"mcp_plain_echo", "mcp_plain_pid"}
            assert answers[3]["result"]["content"][0]["text"] == "ten arms"
        finally:
            process.kill()


def _claude(*arguments: str) -> list[str]:
    def find() -> list[str]:
        node = node_program("@anthropic-ai/claude-code", environment="clients")[0]
        script = node_file("@anthropic-ai/claude-code", "cli-wrapper.cjs", environment="clients")
        return [node, str(script)]

    return [*peer(find), *arguments]


QUIET = {"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def test_claude_code_finds_the_gateway_healthy(running: GatewayProcess, token: str, tmp_path: Path) -> None:
    """Its health check connects, and a wrong token is seen as what it is."""
    added = ("mcp", "add", "--transport", "http")
    header = ("--header", f"Authorization: Bearer {token}")
    _run(_claude(*added, "squidbot", f"{running.url}/mcp", *header), home=tmp_path, env=QUIET)
    wrong = ("--header", "Authorization: Bearer sqb_000000000000_wrong")
    _run(_claude(*added, "stranger", f"{running.url}/mcp", *wrong), home=tmp_path, env=QUIET)
    said = _run(_claude("mcp", "list"), home=tmp_path, env=QUIET)
    lines = {line.split(":")[0]: line for line in said.splitlines() if ":" in line}
    assert "Connected" in lines["squidbot"], said
    assert "Connected" not in lines["stranger"], said


def test_claude_code_reads_what_connect_writes(running: GatewayProcess, tmp_path: Path) -> None:
    """`squidbot connect claude-code --write` is all that a person has to do."""
    program = [sys.executable, "-m", "squidbot"]
    env = {**os.environ, "SQUIDBOT_HOME": str(running.state), "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    subprocess.run(
        [*program, "--config", str(running.settings), "connect", "claude-code", "--role", ROLE, "--write"],
        cwd=tmp_path,
        env=env,
        check=True,
        timeout=PATIENCE,
        capture_output=True,
    )
    shown = _run(_claude("mcp", "get", "squidbot"), home=tmp_path, env=QUIET)
    assert f"{running.url}/mcp" in shown


def test_a_missing_client_says_how_to_get_it() -> None:
    """As every peer does."""
    with pytest.raises(PeerMissing, match="make peers"):
        node_program("no-such-package", environment="clients")
