"""What a gateway does beside passing calls on: it answers servers for clients without a model, and reviews its grants."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.fixtures.gateway import ROLE, GatewayProcess, gateway, settings_of, until_listed
from tests.fixtures.running import running as running_world
from tests.fixtures.running import until

pytestmark = [pytest.mark.anyio, pytest.mark.deadline(120)]


async def _thought(running: GatewayProcess) -> str:
    """What the server's own tool heard from the model, asked through a client that has none."""
    headers = {"Authorization": f"Bearer {running.token()}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
        await until_listed(http, running.url, headers["Authorization"].removeprefix("Bearer "), "mcp_world_think")
        async with Client(streamable_http_client(f"{running.url}/mcp", http_client=http), mode="legacy") as client:
            try:
                return str((await client.call_tool("mcp_world_think")).content[0])
            except MCPError as error:
                return error.error.message


@pytest.mark.requirement("G-05")
async def test_a_server_that_may_is_answered_by_the_model_of_the_settings_within_its_budget(tmp_path: Path) -> None:
    """Few MCP clients offer a model; the team's own stands in, for servers that the settings name, and not for ever."""
    script = {"turns": [{"text": "Forty-two."}]}
    (tmp_path / "script.json").write_text(json.dumps(script), encoding="utf-8")
    model: dict[str, Any] = {"provider": "scripted", "name": "script.json"}
    with running_world("stdio", "--legacy-only") as world:
        entry = {**world, "sampling": {"requests": 1, "tokens": 1_000}}
        document = settings_of({"world": entry}, model=model)
    with gateway(tmp_path, document) as running:
        assert "Forty-two." in await _thought(running)
        assert "has used up its 1 requests" in await _thought(running)
        kept = running.api("GET", "/calls?kind=question")["records"]
    assert [(record["outcome"], record["role"], record["tool"]) for record in kept] == [
        ("refused", ROLE, "sampling"),
        ("ok", ROLE, "sampling"),
    ]


@pytest.mark.requirement("G-05")
async def test_without_a_word_in_the_settings_no_server_reaches_the_model(tmp_path: Path) -> None:
    """A model costs money: whoever connects a server has not said that it may spend it."""
    (tmp_path / "script.json").write_text(json.dumps({"turns": [{"text": "Forty-two."}]}), encoding="utf-8")
    model: dict[str, Any] = {"provider": "scripted", "name": "script.json"}
    with (
        running_world("stdio", "--legacy-only") as world,
        gateway(tmp_path, settings_of({"world": world}, model=model)) as running,
    ):
        assert "Forty-two." not in await _thought(running)


@pytest.mark.requirement("C-07")
async def test_a_grant_that_no_tool_answers_to_is_named_at_the_start_with_the_nearest_name(tmp_path: Path) -> None:
    """Otherwise an agent finds out, in the middle of its work."""
    document = settings_of()
    document["roles"]["careless"] = {"tools": {"plain": ["ecko"], "plane": ["*"]}}
    with gateway(tmp_path, document) as running:
        told = "role 'careless' is granted 'ecko' of server 'plain', which is not there. Did you mean 'echo'?"
        await until(lambda: told in running.said(), what="the warning", within=30)
        assert "role 'careless' is granted '*' of server 'plane', which is not there." in running.said()
        assert ROLE not in running.said()
