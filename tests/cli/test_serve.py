"""`squidbot serve`: the same door over stdio, through the running gateway or by itself, for clients of both eras."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
