"""Three gateways behind a round robin, over a real PostgreSQL and a real Redis: one may die, and nothing is lost."""

import json
import os
import secrets
import signal
import subprocess
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from squidbot.adapters.store.store import SQLStore
from squidbot.core.domain.audit import RecordFilter
from tests.fixtures.gateway import (
    ROLE,
    GatewayProcess,
    ask,
    call,
    command,
    gateway,
    result_of,
    settings_of,
    until_listed,
)
from tests.fixtures.postgres_server import new_database, postgres_server
from tests.fixtures.redis_server import redis_server
from tests.fixtures.round_robin import round_robin
from tests.fixtures.running import ROOT, plain_entry, until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E-10", "E-07", "G-01"), pytest.mark.deadline(300)]
ALLOWED = 20


@dataclass
class Several:
    """All of it."""

    gateways: list[GatewayProcess]
    database: str
    folder: Path


def _settings(database: str, redis: str, servers: dict[str, Any]) -> dict[str, Any]:
    document = settings_of(servers, audit={"url": database}, redis=redis)
    document["roles"]["counted"] = {"tools": {"plain": ["*"]}}
    document["limits"].append({"role": "counted", "rate": "1/d", "burst": ALLOWED, "concurrency": 1_000})
    return document


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The url of a server, for the tests of this file."""
    with postgres_server(secrets.token_hex(8)) as url:
        yield url


@pytest.fixture
def several(tmp_path: Path, postgres: str) -> Iterator[Several]:
    with ExitStack() as stack:
        database = new_database(postgres)
        redis = stack.enter_context(redis_server(tmp_path))
        document = _settings(database, redis.url, {"plain": plain_entry()})
        gateways = [stack.enter_context(gateway(tmp_path / name, document)) for name in ("one", "two", "three")]
        yield Several(gateways, database, tmp_path)


def _client() -> httpx2.AsyncClient:
    """One that opens a connection for each request, so that each goes to another gateway."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    return httpx2.AsyncClient(trust_env=False, timeout=30, limits=limits)


async def _recorded(several: Several) -> dict[str, str]:
    """Outcomes by what was said, as the record has them; the record itself must be whole."""
    async with SQLStore(several.database, state=several.folder / "judge") as store:
        verification = await store.verify()
        assert verification.ok, verification
        found = [record async for record in store.records(RecordFilter()) if record.tool == "echo"]
    return {json.loads(record.arguments)["text"]: record.outcome for record in found}


async def test_one_of_three_dies_under_load_and_nothing_that_was_answered_is_lost(several: Several) -> None:
    """Whoever asks again is answered by another; limits stay exact; every answer is on record."""
    token, counted = several.gateways[0].token(), several.gateways[1].token("counted")
    answered: set[str] = set()
    outcomes: Counter[str] = Counter()
    async with round_robin([one.url for one in several.gateways]) as url, _client() as http:
        for one in several.gateways:
            await until_listed(http, one.url, token, "mcp_plain_echo")

        async def calls(until_over: anyio.Event) -> None:
            while not until_over.is_set():
                text = uuid.uuid4().hex
                try:
                    result = await call(http, url, token, "mcp_plain_echo", text=text)
                except httpx2.HTTPError:
                    outcomes["cut off"] += 1
                    continue
                assert result["content"][0]["text"] == text
                outcomes["answered"] += 1
                answered.add(text)

        over = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(calls, over)
            await until(lambda: outcomes["answered"] >= 40, what="forty answers")
            several.gateways[1].process.send_signal(signal.SIGKILL)
            several.gateways[1].process.wait(10)
            before = outcomes["answered"]
            await until(lambda: outcomes["answered"] >= before + 40, what="forty more, without the second")
            over.set()
        # Those that it was making, and no others.
        assert outcomes["cut off"] <= 6, outcomes
        limited = await _many(http, url, counted)
    assert limited == {"ok": ALLOWED, "limited": 40}
    recorded = await _recorded(several)
    assert answered <= {text for text, outcome in recorded.items() if outcome == "ok"}
    for one in (several.gateways[0], several.gateways[2]):
        assert one.end() == 0


async def _many(http: httpx2.AsyncClient, url: str, token: str) -> dict[str, int]:
    """Sixty calls at once, of which so many may pass."""
    results: Counter[str] = Counter()

    async def one() -> None:
        result = await call(http, url, token, "mcp_plain_echo", text=f"counted {uuid.uuid4().hex}")
        results["limited" if result.get("isError") else "ok"] += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(ALLOWED + 40):
            tasks.start_soon(one)
    return dict(results)


async def _events(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data:") and line[5:].strip():
            yield json.loads(line[5:])


@pytest.mark.requirement("C-05", "E-04")
async def test_a_session_goes_on_at_any_gateway_and_hears_of_changes_made_at_another(several: Several) -> None:
    """A session is a signed token; a grant that is withdrawn at one is felt and heard at all."""
    first, second, third = several.gateways
    token = first.token()
    base = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    async with _client() as http:
        for one in several.gateways:
            await until_listed(http, one.url, token, "mcp_plain_echo")
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        opened = await http.post(f"{first.url}/mcp", json=message, headers=base)
        session = {**base, "Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await http.post(f"{second.url}/mcp", json=told, headers=session)).status_code == 202
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        listed = result_of(await http.post(f"{third.url}/mcp", json=listing, headers=session))
        assert listed is not None
        assert {tool["name"] for tool in listed["tools"]} == {"mcp_plain_echo", "mcp_plain_pid"}

        with anyio.fail_after(60):
            async with http.stream(
                "GET", f"{third.url}/mcp", headers={**session, "Accept": "text/event-stream"}
            ) as heard:
                assert heard.status_code == 200
                change = {"role": ROLE, "server": "plain", "tool": "pid", "enabled": False}
                await anyio.to_thread.run_sync(first.api, "POST", "/grants", change)
                async for event in _events(heard):
                    if event.get("method") == "notifications/tools/list_changed":
                        break
        listed = result_of(await http.post(f"{second.url}/mcp", json={**listing, "id": 3}, headers=session))
        assert listed is not None
        assert {tool["name"] for tool in listed["tools"]} == {"mcp_plain_echo"}
        revoked = next(row for row in first.api("GET", "/tokens") if row["name"] == "somebody")
        first.api("DELETE", f"/tokens/{revoked['id']}")

        async def refused() -> bool:
            return (await ask(http, third.url, token, "tools/list")).status_code == 401

        await until(refused, what="the token to be nobody's at another gateway")


def _refused(folder: Path, document: dict[str, Any]) -> str:
    """Why a gateway of these settings does not start."""
    folder.mkdir()
    settings = folder / "squidbot.json"
    settings.write_text(json.dumps(document))
    ran = subprocess.run(
        command("--port", "0", settings=settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        env={**os.environ, "SQUIDBOT_HOME": str(folder / "state")},
    )
    assert ran.returncode == 2, ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stderr


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_a_second_gateway_that_would_count_for_itself_is_refused(tmp_path: Path, postgres: str, kind: str) -> None:
    """Limits must be exact: two that do not count together let through twice as much. One that is gone is in nobody's way."""
    database = new_database(postgres) if kind == "postgresql" else f"sqlite:///{tmp_path}/shared.db"
    alone = settings_of({"plain": plain_entry()}, audit={"url": database})
    with gateway(tmp_path / "one", alone) as first:
        words = _refused(tmp_path / "two", alone)
        assert "another gateway" in words
        assert '"redis": "redis://' in words
        with redis_server(tmp_path) as redis:
            together = {**alone, "redis": redis.url}
            assert "counts calls for itself" in _refused(tmp_path / "three", together)
            assert first.end(signal.SIGKILL) == -9
            with gateway(tmp_path / "four", together), gateway(tmp_path / "five", together):
                assert "another gateway" in _refused(tmp_path / "six", alone)
    with gateway(tmp_path / "seven", alone) as last:
        assert last.end() == 0


def _children(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


async def test_workers_share_an_address_and_one_that_dies_is_replaced(tmp_path: Path) -> None:
    """More cores of one machine, the same limits; the parent's end is theirs."""
    with redis_server(tmp_path) as redis:
        document = settings_of({"plain": plain_entry()}, redis=redis.url)
        document["roles"]["counted"] = {"tools": {"plain": ["*"]}}
        document["limits"].append({"role": "counted", "rate": "1/d", "burst": ALLOWED, "concurrency": 1_000})
        with gateway(tmp_path, document, "--workers", "2") as running:
            token, counted = running.token(), running.token("counted")
            async with _client() as http:
                await until_listed(http, running.url, token, "mcp_plain_pid")
                servers: set[str] = set()

                async def both() -> bool:
                    answer = await ask(http, running.url, token, "tools/call", {"name": "mcp_plain_pid"})
                    result = result_of(answer)
                    if result is not None and not result.get("isError"):
                        servers.add(result["content"][0]["text"])
                    return len(servers) >= 2

                await until(both, what="answers of both workers")
                assert await _many(http, running.url, counted) == {"ok": ALLOWED, "limited": 40}
                before = _children(running.process.pid)
                os.kill(min(before), signal.SIGKILL)
                servers.clear()
                await until(both, what="answers of both again", within=60)
                assert len(_children(running.process.pid) - before) == 1
            assert running.end() == 0
            assert not (running.state / "gateway.json").exists()


async def test_who_comes_while_workers_end_waits_for_nobody(tmp_path: Path) -> None:
    """One worker may be gone while another still answers a call: nobody may be left at the door of the first."""
    with redis_server(tmp_path) as redis:
        servers = {"plain": plain_entry("--each", "4")}
        with gateway(tmp_path, settings_of(servers, redis=redis.url), "--workers", "2") as running:
            token, answers = running.token(), list[dict[str, Any]]()
            async with _client() as http, anyio.create_task_group() as tasks:
                await until_listed(http, running.url, token, "mcp_plain_echo")

                async def waits() -> None:
                    answers.append(await call(http, running.url, token, "mcp_plain_echo", text="slow"))

                tasks.start_soon(waits)
                await anyio.sleep(0.5)
                before = _children(running.process.pid)
                running.process.send_signal(signal.SIGTERM)
                await until(lambda: len(_children(running.process.pid)) < len(before), what="one worker to be gone")
                assert not answers
                async with httpx2.AsyncClient(trust_env=False, timeout=3) as late:
                    for _ in range(20):
                        asked = {"Connection": "close"}
                        assert (await late.get(f"{running.url}/healthz", headers=asked)).status_code == 200
            assert answers[0]["content"][0]["text"] == "slow"
            assert await anyio.to_thread.run_sync(running.process.wait, 20) == 0
