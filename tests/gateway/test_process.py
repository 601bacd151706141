"""The gateway as a process: how it starts, what it prints, how it takes up settings, and how it ends."""

import json
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio import connect_tcp, create_task_group, fail_after, to_thread

from tests.faults.measure import marked
from tests.faults.scene import stdio_entry
from tests.fixtures.gateway import (
    ROLE,
    GatewayProcess,
    ask,
    call,
    command,
    gateway,
    headers,
    request,
    result_of,
    settings_of,
    until_listed,
)
from tests.fixtures.running import ROOT, plain_entry, until

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-01"), pytest.mark.deadline(120)]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[GatewayProcess]:
    with gateway(tmp_path, settings_of()) as process:
        yield process


@pytest.fixture
def http() -> Callable[[], httpx2.AsyncClient]:
    return lambda: httpx2.AsyncClient(trust_env=False, timeout=30)


def _squidbot(*arguments: str, state: Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "squidbot", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "SQUIDBOT_HOME": str(state), "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )


async def test_it_says_one_line_when_it_is_ready_and_leaves_nothing(running: GatewayProcess, tmp_path: Path) -> None:
    """Programs wait for that line; others find the gateway in the state folder while it runs, and not after."""
    assert running.ready == {
        "url": running.url,
        "mcp": f"{running.url}/mcp",
        "dashboard": f"{running.url}/",
        "pid": running.process.pid,
    }
    for name in ("gateway.json", "admin-token"):
        assert stat.S_IMODE((running.state / name).stat().st_mode) == 0o600
    asked = _squidbot("status", "--json", state=running.state)
    assert asked.returncode == 0, asked.stderr
    status = json.loads(asked.stdout)
    assert (status["url"], status["pid"]) == (running.url, running.process.pid)
    assert [server["name"] for server in status["servers"]] == ["plain"]
    assert status["settings"]["ok"] is True
    second = _squidbot("--config", str(running.settings), "gateway", "--port", "0", "--json", state=running.state)
    assert second.returncode == 2
    assert running.url in json.loads(second.stdout)["error"]["message"]
    assert running.end(signal.SIGTERM) == 0
    assert not (running.state / "gateway.json").exists()
    assert _squidbot("status", state=running.state).returncode == 4
    assert "Traceback" not in running.said()


@pytest.mark.requirement("E-10")
async def test_one_process_of_a_server_serves_all_callers_and_the_other_doors_are_open(
    tmp_path: Path, http: Callable[[], httpx2.AsyncClient]
) -> None:
    """A process for each call or client is what brings machines down; and whoever runs it must be able to look."""
    starts, callers = tmp_path / "starts", ("ann", "ben", "eve")
    with gateway(tmp_path, settings_of({"plain": plain_entry("--starts", str(starts))})) as running:
        tokens = [running.token(name=name) for name in callers]
        async with http() as client:
            await until_listed(client, running.url, tokens[0], "mcp_plain_pid")
            found: list[str] = []

            async def one(token: str) -> None:
                found.append(str((await call(client, running.url, token, "mcp_plain_pid"))["content"]))

            async with create_task_group() as tasks:
                for token in tokens * 5:
                    tasks.start_soon(one, token)
            admin = {"Authorization": f"Bearer {running.admin}"}
            for path in ("/healthz", "/readyz", "/metrics", "/api/v1/status", "/sign-in"):
                assert (await client.get(running.url + path, headers=admin)).status_code == 200, path
        assert (len(found), len(set(found)), len(starts.read_text().split())) == (15, 1, 1)
        with closing(sqlite3.connect(running.state / "audit.db")) as database:
            members = dict(database.execute("SELECT id, name FROM squad_members").fetchall())
            rows = database.execute("SELECT squad_member_id FROM tool_execution_logs WHERE tool = 'pid'")
            who = {member for (member,) in rows}
    assert sorted(members[member] for member in who) == sorted(callers)


@pytest.mark.requirement("F-05")
async def test_without_settings_it_is_closed_recorded_and_has_the_practice_world(
    tmp_path: Path, http: Callable[[], httpx2.AsyncClient]
) -> None:
    """T23: the defaults of somebody who has read nothing."""
    with gateway(tmp_path, None) as running:
        assert running.url.startswith("http://127.0.0.1:")
        async with http() as client:
            assert (await client.post(f"{running.url}/mcp", json={})).status_code == 401
            assert (await client.get(f"{running.url}/api/v1/status")).status_code == 401
            token = running.token("project_manager")
            await until_listed(client, running.url, token, "mcp_jira_search_tickets")
            found = await call(client, running.url, token, "mcp_jira_search_tickets", jql="project = SHOP")
            assert not found.get("isError"), found
            assert "SHOP-" in json.dumps(found)
        (record,) = [row for row in running.api("GET", "/calls")["records"] if row["tool"] == "search_tickets"]
        assert (record["role"], record["outcome"], record["origin"]) == ("project_manager", "ok", "mcp")
        before = running.said()
        assert b" 400 " in await _talk(running.url, b"no HTTP at all\r\n\r\n")
        # Nobody fills the log who has shown no token.
        assert running.said() == before
        assert running.end(signal.SIGINT) == 130


async def _talk(url: str, said: bytes) -> bytes:
    async with await connect_tcp("127.0.0.1", int(url.rpartition(":")[2])) as stream:
        await stream.send(said)
        with fail_after(10):
            return await stream.receive()


def _rewrite(running: GatewayProcess, document: Any) -> None:
    """As editors do: a new file in the old one's place."""
    fresh = running.settings.with_name("fresh")
    fresh.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    fresh.replace(running.settings)


@pytest.mark.requirement("G-10")
async def test_settings_are_taken_up_while_clients_stay_and_broken_ones_are_refused(
    running: GatewayProcess, http: Callable[[], httpx2.AsyncClient]
) -> None:
    """A server comes and goes without a restart; a slip of the pen changes nothing, and is shown."""
    async with http() as client:
        token = running.token()
        await until_listed(client, running.url, token, "mcp_plain_pid")
        pid = (await call(client, running.url, token, "mcp_plain_pid"))["content"][0]["text"]
        _rewrite(running, settings_of({"plain": plain_entry(), "other": plain_entry()}))
        await until_listed(client, running.url, token, "mcp_other_echo")
        assert (await call(client, running.url, token, "mcp_plain_pid"))["content"][0]["text"] == pid

        _rewrite(running, '{"tools": {"mcp_servers": {"plain": {"comand": "x"}}}}')

        def report() -> dict[str, Any]:
            settings: dict[str, Any] = running.api("GET", "/settings")
            return settings

        await until(lambda: report().get("ok") is False, what="the report of the broken file")
        assert "comand" in json.dumps(report())
        _rewrite(running, '{"tools": {')
        await until(lambda: "is not valid JSON" in json.dumps(report()), what="the report of half a file")
        shown = await to_thread.run_sync(lambda: _squidbot("status", state=running.state))
        assert "is not valid JSON" in shown.stderr
        assert (await call(client, running.url, token, "mcp_other_echo", text="still"))["content"][0]["text"] == "still"

        _rewrite(running, settings_of({"plain": plain_entry()}))
        await until(lambda: report().get("ok") is True, what="the mended file to be taken up")

        since = report()["since"]
        running.process.send_signal(signal.SIGHUP)
        await until(lambda: report()["since"] != since, what="SIGHUP to be heard")

        async def gone() -> bool:
            result = result_of(await ask(client, running.url, token, "tools/list"))
            return result is not None and not any(tool["name"].startswith("mcp_other") for tool in result["tools"])

        await until(gone, what="the other server to go")
        assert (await call(client, running.url, token, "mcp_plain_pid"))["content"][0]["text"] == pid
    assert running.end() == 0
    assert "comand" in running.said()


@pytest.mark.requirement("B-07", "B-08")
async def test_a_server_that_appears_late_is_there_when_it_appears(
    tmp_path: Path, http: Callable[[], httpx2.AsyncClient]
) -> None:
    """Its tools come to clients that were there before it."""
    late = tmp_path / "late.py"
    entry = {"command": sys.executable, "args": ["-I", "-S", str(late)]}
    with gateway(tmp_path, settings_of({"plain": plain_entry(), "late": entry})) as running:
        async with http() as client:
            token = running.token()
            await until_listed(client, running.url, token, "mcp_plain_echo")
            late.write_text((ROOT / "tests/fixtures/plain.py").read_text("utf-8"), encoding="utf-8")
            await until_listed(client, running.url, token, "mcp_late_echo")
            assert (await call(client, running.url, token, "mcp_late_echo", text="here"))["content"][0][
                "text"
            ] == "here"


async def test_a_thousand_streams_leave_room_for_those_who_call(
    running: GatewayProcess, http: Callable[[], httpx2.AsyncClient]
) -> None:
    """T15: one client that opens all the streams there are must not shut the door on everybody."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, _files()), _files()))
    token = running.token()
    message = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    body = json.dumps(message).encode()
    fields = {**headers(token, message), "host": "localhost", "content-length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    async with AsyncExitStack() as stack:

        async def listen() -> bytes:
            stream = await connect_tcp("127.0.0.1", int(running.url.rpartition(":")[2]))
            await stack.enter_async_context(stream)
            await stream.send(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
            with fail_after(20):
                return (await stream.receive())[:12]

        for _ in range(1_000):
            assert await listen() == b"HTTP/1.1 200"
        assert await listen() == b"HTTP/1.1 503"
        async with http() as client:
            found = await call(client, running.url, token, "mcp_plain_echo", text="ten arms")
            assert found["content"][0]["text"] == "ten arms"
            assert running.api("GET", "/status")["ready"]


def _files() -> int:
    """How many this process may open at most."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


async def test_a_second_signal_does_not_wait(tmp_path: Path, http: Callable[[], httpx2.AsyncClient]) -> None:
    """Whoever presses Ctrl-C twice means it; the call that is cut off is told so, and recorded."""
    import anyio

    entry = {**plain_entry("--each", "60"), "env": {"FAULT_MARK": "second-signal"}}
    with gateway(tmp_path, settings_of({"plain": entry})) as running:
        token = running.token()
        async with http() as client, anyio.create_task_group() as tasks:
            await until_listed(client, running.url, token, "mcp_plain_echo")
            answers: list[httpx2.Response] = []

            async def waits() -> None:
                params = {"name": "mcp_plain_echo", "arguments": {"text": "slow"}}
                answers.append(await ask(client, running.url, token, "tools/call", params))

            tasks.start_soon(waits)
            await until(lambda: running.api("GET", "/status")["under_way"] == 1, what="the call to be under way")
            began = time.monotonic()
            running.process.send_signal(signal.SIGTERM)
            await until(lambda: "under way" in running.said(), what="the first signal to be heard")
            running.process.send_signal(signal.SIGTERM)
            await until(lambda: running.process.poll() is not None, what="the end", within=20)
        assert running.process.returncode == 0
        assert time.monotonic() - began < 20
        assert answers[0].status_code == 503
        assert "shutting down" in answers[0].text
        assert not marked("second-signal")


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
async def test_a_gateway_at_rest_is_small(
    tmp_path: Path, http: Callable[[], httpx2.AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs one beside an editor must not notice: with three servers, from its very first start, and once it was used."""
    for name in ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"):
        monkeypatch.delenv(name, raising=False)  # what measures the tests takes room too
    starts = tmp_path / "starts"
    servers = {name: plain_entry("--starts", str(starts)) for name in ("one", "two", "three")}
    with gateway(tmp_path, settings_of(servers)) as running:
        await until(lambda: starts.exists() and len(starts.read_text().split()) == 3, what="all servers")
        assert _memory(running) < 100
        token = running.token()
        async with http() as client:
            for name in ("one", "two", "three"):
                await until_listed(client, running.url, token, f"mcp_{name}_echo")
            for number in range(200):
                await call(client, running.url, token, "mcp_one_echo", text=str(number))
            assert _memory(running) < 110


def _memory(running: GatewayProcess) -> float:
    """Megabytes that are its own or shared."""
    status = Path(f"/proc/{running.process.pid}/status").read_text("ascii")
    return int(status.split("VmRSS:")[1].split()[0]) * 1024 / 1e6


async def test_a_call_is_answered_long_after_the_signal_and_servers_without_one_are_gone_by_then(
    tmp_path: Path, http: Callable[[], httpx2.AsyncClient]
) -> None:
    """Fault 53: what is under way has most of the ten seconds, whatever other servers make of their end."""
    slow = {**plain_entry("--each", "7"), "env": {"FAULT_MARK": "answers-late"}}
    idle = stdio_entry("ignores_eof", "term", env={"FAULT_MARK": "ends-meanwhile"})
    with gateway(tmp_path, settings_of({"plain": slow, "idle": idle})) as running:
        token = running.token()
        async with http() as client, create_task_group() as tasks:
            await until_listed(client, running.url, token, "mcp_plain_echo")
            await until(lambda: len(marked("ends-meanwhile")) > 0, what="the other server")
            answers: list[httpx2.Response] = []

            async def waits() -> None:
                params = {"name": "mcp_plain_echo", "arguments": {"text": "at last"}}
                answers.append(await ask(client, running.url, token, "tools/call", params))

            tasks.start_soon(waits)
            await until(lambda: running.api("GET", "/status")["under_way"] == 1, what="the call to be under way")
            running.process.send_signal(signal.SIGTERM)
            await until(lambda: not marked("ends-meanwhile"), what="the end of the other server")
            assert not answers
            assert running.process.poll() is None
            await until(lambda: running.process.poll() is not None, what="the end", within=20)
        assert running.process.returncode == 0
        result = result_of(answers[0])
        assert result is not None
        assert result["content"][0]["text"] == "at last"
        assert not marked("answers-late")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_call_that_never_ends_is_cut_off_and_keeps_nobody(
    tmp_path: Path, http: Callable[[], httpx2.AsyncClient], number: signal.Signals
) -> None:
    """Fault 53: there is time for calls, and then for a server that sits in one; P14 measures how much."""
    entry = {**plain_entry("--each", "60"), "env": {"FAULT_MARK": f"hanging-{number}"}}
    with gateway(tmp_path, settings_of({"plain": entry})) as running:
        token = running.token()
        async with http() as client, create_task_group() as tasks:
            await until_listed(client, running.url, token, "mcp_plain_echo")
            answers: list[httpx2.Response] = []

            async def waits() -> None:
                params = {"name": "mcp_plain_echo", "arguments": {"text": "slow"}}
                answers.append(await ask(client, running.url, token, "tools/call", params))

            tasks.start_soon(waits)
            await until(lambda: running.api("GET", "/status")["under_way"] == 1, what="the call to be under way")
            running.process.send_signal(number)
            await until(lambda: running.process.poll() is not None, what="the end", within=20)
        assert running.process.returncode == (130 if number is signal.SIGINT else 0)
        assert answers[0].status_code == 503
        assert not marked(f"hanging-{number}")
    tail = _squidbot("audit", "tail", "--json", state=running.state)
    assert [record["outcome"] for record in json.loads(tail.stdout) if record["tool"] == "echo"] == ["cancelled"]


async def test_after_a_kill_the_next_start_goes_on_where_it_was(tmp_path: Path) -> None:
    """kill -9: nothing is in its way, the same token is good, the record is whole."""
    with gateway(tmp_path, settings_of()) as first:
        token = first.token()
        assert first.end(signal.SIGKILL) == -9
    with gateway(tmp_path, settings_of()) as second:
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
            await until_listed(client, second.url, token, "mcp_plain_echo")
        assert (second.state / "gateway.json").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--host", "0.0.0.0"), "allowed_hosts"), (("--workers", "2"), "redis")],
    ids=["open to others", "limits not shared"],
)
def test_what_would_be_open_or_inexact_is_refused(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    """T23: with the line to add."""
    settings = tmp_path / "squidbot.json"
    settings.write_text(json.dumps(settings_of()))
    ran = subprocess.run(
        command(*options, "--port", "0", settings=settings),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        env={**os.environ, "SQUIDBOT_HOME": str(tmp_path / "state")},
    )
    assert ran.returncode == 2
    assert words in ran.stderr
    assert ROLE not in ran.stderr


@pytest.mark.requirement("E-04", "C-05")
async def test_a_grant_that_another_process_revokes_is_heard_by_a_client_that_is_connected(
    running: GatewayProcess, http: Callable[[], httpx2.AsyncClient]
) -> None:
    """Grants live in the database: whoever changes them there, clients that only listen must learn of it."""
    token = running.token()
    async with http() as client:
        await until_listed(client, running.url, token, "mcp_plain_echo")
        message = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        asking = client.stream("POST", f"{running.url}/mcp", json=message, headers=headers(token, message))
        async with asking as stream:
            lines = stream.aiter_lines()
            async for line in lines:
                if "acknowledged" in line:
                    break
            options = ("--config", str(running.settings), "roles", "revoke", ROLE, "plain", "echo")
            done = await to_thread.run_sync(lambda: _squidbot(*options, state=running.state))
            assert done.returncode == 0, done.stderr
            with fail_after(30):
                async for line in lines:
                    if "notifications/tools/list_changed" in line:
                        break
        result = result_of(await ask(client, running.url, token, "tools/list"))
    assert result is not None
    assert [tool["name"] for tool in result["tools"]] == ["mcp_plain_pid"]


async def test_what_is_no_mcp_is_answered_recorded_and_shown(
    running: GatewayProcess, http: Callable[[], httpx2.AsyncClient]
) -> None:
    """T15: one record each, with who sent it, in the trail and on its page; the gateway is as well as before."""
    token, large = running.token(), b"[" + b" " * (5 * 2**20) + b"]"
    async with http() as client:
        await until_listed(client, running.url, token, "mcp_plain_echo")
        sent = headers(token, request("tools/list", {}))
        for content, status in ((b"[]", 400), (b"{", 400), (large, 413)):
            answer = await client.post(f"{running.url}/mcp", content=content, headers=sent)
            assert answer.status_code == status
            assert answer.json()["error"]["code"] in (-32600, -32700)
        assert (await client.get(f"{running.url}/mcp")).status_code == 401
        assert (await client.get(f"{running.url}/readyz")).status_code == 200
        link = (
            await client.post(f"{running.url}/sign-in/link", headers={"authorization": f"Bearer {running.admin}"})
        ).json()["link"]
        code = link.split("code=")[1]
        signed_in = await client.post(
            f"{running.url}/sign-in", data={"code": code}, headers={"origin": running.url}, follow_redirects=True
        )
        assert signed_in.status_code == 200
        page = (await client.get(f"{running.url}/calls?kind=request")).text
    assert page.count("The body must be a single JSON-RPC message") == 1
    assert page.count("The body is larger than 4194304 bytes") == 1
    tail = _squidbot("audit", "tail", "--outcome", "refused", "--json", state=running.state)
    kept = [(record["kind"], record["role"], record["arguments"].get("status")) for record in json.loads(tail.stdout)]
    assert kept == [*(("request", ROLE, status) for status in (400, 400, 413)), ("sign_in", "", None)]
    assert _squidbot("status", state=running.state).returncode == 0
