"""`squidbot serve`: the same door over stdio, through the running gateway or by itself, for clients of both eras."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import TextContent

from tests.fixtures.gateway import ROLE, gateway, settings_of
from tests.fixtures.running import ROOT, plain_entry, until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01"), pytest.mark.deadline(150)]
ERAS: tuple[Any, ...] = ("legacy", "auto")


@asynccontextmanager
async def _served(
    settings: Path, state: Path, mode: Literal["legacy", "auto"], role: str = ROLE
) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "squidbot", "--config", str(settings), "serve", "--role", role],
        env={**os.environ, "SQUIDBOT_HOME": str(state), "PYTHONPATH": str(ROOT)},
        cwd=str(ROOT),
    )
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        yield client


async def _uses_it(client: Client) -> None:
    names = {tool.name for tool in (await client.list_tools()).tools}
    assert {"mcp_plain_echo", "mcp_plain_pid"} <= names
    assert "mcp_closed_echo" not in names
    result = await client.call_tool("mcp_plain_echo", {"text": "ten arms"})
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert block.text == "ten arms"
    with pytest.raises(MCPError, match="Unknown tool"):
        await client.call_tool("mcp_closed_echo", {"text": "no"})


def _document() -> dict[str, Any]:
    document = settings_of({"plain": plain_entry(), "closed": plain_entry()})
    return {**document, "roles": {ROLE: {"tools": {"plain": ["*"]}}}}


@pytest.mark.parametrize("mode", ERAS)
async def test_it_serves_by_itself_where_no_gateway_runs(tmp_path: Path, mode: Literal["legacy", "auto"]) -> None:
    """A client that can only start commands needs nothing else."""
    settings = tmp_path / "squidbot.json"
    settings.write_text(json.dumps(_document()))
    async with _served(settings, tmp_path / "state", mode) as client:
        await _uses_it(client)


@pytest.mark.parametrize("mode", ERAS)
async def test_it_passes_on_to_the_gateway_that_runs(tmp_path: Path, mode: Literal["legacy", "auto"]) -> None:
    """One process per server serves all callers, also those that came by a command; the token ends with it."""
    with gateway(tmp_path, _document()) as running:
        await until(lambda: running.api("GET", "/status")["tools"] == 4, what="all tools")
        async with _served(running.settings, running.state, mode) as client:
            await _uses_it(client)
            (token,) = [row for row in running.api("GET", "/tokens") if row["name"].startswith("serve-")]
            assert not token["revoked"]
        records = [row for row in running.api("GET", "/calls")["records"] if row["tool"] == "echo"]
        assert {(row["role"], row["outcome"]) for row in records} == {(ROLE, "ok"), (ROLE, "refused")}

        def revoked() -> bool:
            return all(row["revoked"] for row in running.api("GET", "/tokens") if row["name"].startswith("serve-"))

        await until(revoked, what="the token to be taken back")


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "printf", "version": "1"}}


def _piped(settings: Path, state: Path, *messages: dict[str, Any] | str) -> subprocess.CompletedProcess[str]:
    """What comes of lines that are all written at once, with nobody behind them."""
    lines = [message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message}) for message in messages]
    return subprocess.run(
        [sys.executable, "-m", "squidbot", "--config", str(settings), "serve", "--role", ROLE],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "SQUIDBOT_HOME": str(state)},
        timeout=90,
        check=False,
    )


def _opening(*after: dict[str, Any] | str) -> tuple[dict[str, Any] | str, ...]:
    hello = {"id": 0, "method": "initialize", "params": HELLO}
    return (hello, {"method": "notifications/initialized"}, *after)


def _said(ran: subprocess.CompletedProcess[str]) -> dict[Any, dict[str, Any]]:
    assert ran.returncode == 0, ran.stderr
    assert "internal error" not in ran.stderr
    return {answer["id"]: answer for answer in map(json.loads, ran.stdout.splitlines()) if "id" in answer}


CALL = {"id": 2, "method": "tools/call", "params": {"name": "mcp_plain_echo", "arguments": {"text": "ten arms"}}}


def _is_answered(said: dict[Any, dict[str, Any]]) -> None:
    assert set(said) == {0, 1, 2}
    assert said[0]["result"]["protocolVersion"] == "2025-11-25"
    assert {"mcp_plain_echo"} <= {tool["name"] for tool in said[1]["result"]["tools"]}
    assert said[2]["result"]["content"] == [{"type": "text", "text": "ten arms"}]


def test_lines_written_at_once_are_all_answered_before_it_ends(tmp_path: Path) -> None:
    """Whoever pipes a few lines in wants their answers: the end of stdin comes after them, and is no failure."""
    settings = tmp_path / "squidbot.json"
    settings.write_text(json.dumps(_document()))
    ran = _piped(settings, tmp_path / "state", *_opening({"id": 1, "method": "tools/list"}, CALL))
    _is_answered(_said(ran))


def test_beside_a_gateway_too_lines_written_at_once_are_all_answered(tmp_path: Path) -> None:
    """What follows `initialize` waits for the session that it opens."""
    with gateway(tmp_path, _document()) as running:
        ran = _piped(running.settings, running.state, *_opening({"id": 1, "method": "tools/list"}, CALL))
        _is_answered(_said(ran))


@pytest.mark.parametrize("is_beside", [False, True])
def test_a_signal_ends_it_although_stdin_is_open(tmp_path: Path, *, is_beside: bool) -> None:
    """A client that dies badly leaves a pipe that nobody closes, and a supervisor asks once, politely."""
    settings = tmp_path / "squidbot.json"
    settings.write_text(json.dumps(_document()))
    with ExitStack() as stack:
        state = stack.enter_context(gateway(tmp_path, _document())).state if is_beside else tmp_path / "state"
        served = stack.enter_context(_started(settings, state))
        assert served.stdin is not None
        assert served.stdout is not None
        served.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}) + "\n")
        served.stdin.flush()
        assert json.loads(served.stdout.readline())["id"] == 0
        served.send_signal(signal.SIGTERM)
        assert served.wait(15) == 130


@contextmanager
def _started(settings: Path, state: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "squidbot", "--config", str(settings), "serve", "--role", ROLE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "SQUIDBOT_HOME": str(state)},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


ODD: tuple[str, ...] = (
    "{",
    "[" * 100_000,
    '[{"jsonrpc":"2.0","id":9,"method":"ping"}]',
    '{"jsonrpc":"2.0","id":{},"method":"ping"}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
    '{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":["x"],"_meta":3}}',
    '{"jsonrpc":"2.0","id":11,"method":"ping","params":{"half":"\\ud800"}}',
    '{"jsonrpc":"2.0","id":12,"method":"ping","params":{"n":NaN}}',
)


def test_odd_lines_end_nothing_and_each_answer_names_its_question(tmp_path: Path) -> None:
    """A client waits for the id that it gave; an answer to nobody would leave it waiting for ever."""
    with gateway(tmp_path, _document()) as running:
        said = _said(_piped(running.settings, running.state, *ODD, *_opening(*ODD, CALL)))
    assert said[2]["result"]["content"] == [{"type": "text", "text": "ten arms"}]
    assert {said[name]["error"]["code"] for name in (10, 11, 12)} <= {-32602, -32700}


def test_a_role_that_is_none_is_refused(tmp_path: Path) -> None:
    """Nobody gets tools by a slip of the pen."""
    settings = tmp_path / "squidbot.json"
    settings.write_text(json.dumps(_document()))
    ran = subprocess.run(
        [sys.executable, "-m", "squidbot", "--config", str(settings), "serve", "--role", "operator"],
        input="",
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert "unknown role 'operator'" in ran.stderr
