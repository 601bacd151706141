"""All servers of one configuration: side by side, each by its name, and none left behind."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from loguru import logger

from squidbot import MCPClient, MCPConfig, MCPConnectionError
from squidbot.adapters.registry.memory import InMemoryToolRegistry
from squidbot.core.domain.servers import LOG_SEVERITY, ServerEvent
from squidbot.core.ports import ToolPort
from tests.adapters.mcp.processes import alive, messages, scripted
from tests.faults.scene import stdio_entry
from tests.fixtures.meeting import meeting
from tests.fixtures.running import Entry, plain_entry, until

pytestmark = pytest.mark.anyio


def _plain(*options: str, **entry: Any) -> Entry:
    return {**plain_entry(*options), "protocol": "legacy", **entry}


def _client(servers: dict[str, Any], **options: Any) -> MCPClient:
    return MCPClient(MCPConfig.from_dict({"servers": servers}), **options)


async def _pid(client: MCPClient, server: str) -> int:
    return int((await client.call_tool(server, "pid")).text)


# Connecting


@pytest.mark.requirement("B-11")
async def test_two_names_for_one_server_are_two_connections() -> None:
    """Two accounts of one service must never share a process."""
    async with _client({"one": _plain(), "two": _plain()}) as client:
        assert await client.connect_all() == {"one": True, "two": True}
        assert await _pid(client, "one") != await _pid(client, "two")
        await client.disconnect("one")
        assert (await client.call_tool("two", "echo", {"text": "still here"})).text == "still here"
        assert {tool.server for tool in client.get_available_tools()} == {"two"}


async def test_a_servers_tools_are_put_into_the_registry_once_for_each_time_that_they_are_new() -> None:
    """Every change builds the whole index anew: two hundred servers that start would pay for it squared."""
    put: list[int] = []

    class Counting(InMemoryToolRegistry):
        def replace(self, server: str, tools: Sequence[ToolPort]) -> None:
            put.append(len(tools))
            super().replace(server, tools)

    async with _client({"one": _plain()}, registry=Counting()) as client:
        await client.connect("one")
        assert put.count(2) == 1
        await client.disconnect("one")
        assert client.get_available_tools() == []
        await client.connect("one")
        assert len(client.get_available_tools()) == put.count(2) == 2


@pytest.mark.requirement("B-12")
async def test_leaving_closes_all_of_it_also_after_an_exception_and_from_another_task() -> None:
    """Whatever happens inside, no process may be left."""
    client = _client({"one": _plain(), "two": _plain()})
    pids: list[int] = []

    async def use() -> None:
        async with client:
            await asyncio.create_task(client.connect("one"))
            await client.connect("two")
            pids.extend([await _pid(client, "one"), await _pid(client, "two")])
            raise LookupError("a bug of the program's")

    with pytest.raises(LookupError):
        await use()
    assert len(pids) == 2
    assert not any(alive(pid) for pid in pids)
    assert [status.state for status in client.statuses()] == ["idle", "idle"]
    assert client.get_available_tools() == []


@pytest.mark.requirement("B-12")
async def test_a_task_that_is_cancelled_leaves_no_server_behind() -> None:
    """Leaving is not cut short by what made us leave."""
    client = _client({"one": _plain()})
    pids: list[int] = []

    async def use() -> None:
        async with client:
            await client.connect("one")
            pids.append(await _pid(client, "one"))
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        await until(lambda: pids, what="the server")
        tasks.cancel_scope.cancel()
    assert not alive(pids[0])


@pytest.mark.requirement("B-06", "B-07")
async def test_servers_start_side_by_side_and_one_that_cannot_start_holds_up_nobody(logged: list[str]) -> None:
    """A healthy server must not wait for a broken one."""
    servers = {
        "missing": {"command": "no-such-program"},
        "silent": scripted({"initialize": []}, startup_timeout=1.0, max_retries=0),
        "good": _plain(),
        "disabled": _plain(enabled=False),
    }
    async with _client(servers) as client:
        connecting = asyncio.create_task(client.connect_all())
        await until(lambda: client.get_available_tools("good"), what="the good server's tools", within=5)
        assert not connecting.done()
        assert await connecting == {"missing": False, "silent": False, "good": True}
        states = {status.name: status.state for status in client.statuses()}
        assert states == {"missing": "failed", "silent": "failed", "good": "ready", "disabled": "disabled"}
        assert client.status("missing").hint == "Install 'no-such-program', or give its full path as `command`."
    assert [warning.count("is not available") for warning in logged] == [1, 1]
    assert "server 'missing'" in logged[0]
    assert "did not answer within 1 s" in logged[1]


async def test_who_leaves_lets_servers_go_one_by_one_and_starts_none(tmp_path: Path) -> None:
    """A gateway that ends waits for calls: meanwhile servers that have none can end, and none may come back."""
    state = tmp_path / "state"
    servers = {
        "idle": _plain(),
        "busy": _plain("--each", "2.5"),
        "lazy": _plain(lazy=True),
        "off": _plain(enabled=False),
    }
    async with _client(servers, state=state) as client:
        await client.connect_all(("lazy",))  # so that its tools are known, and it starts at its first use
    async with _client(servers, state=state) as client:
        await client.start_all()
        await until(lambda: client.status("busy").state == client.status("idle").state == "ready", what="both servers")
        pids = [await _pid(client, "idle")]
        answers: list[str] = []

        async def call() -> None:
            answers.append((await client.call_tool("busy", "echo", {"text": "to the end"})).text)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await until(lambda: client.connection("busy").busy, what="the call to be under way")
            tasks.start_soon(client.let_go)
            await until(lambda: client.status("idle").state == "idle", what="the idle server to be gone")
            assert not answers
            assert client.status("busy").state == "ready"
            assert not any(map(alive, pids))
            for name in ("idle", "lazy"):
                assert not await client.connect(name)
                late = await client.call_tool(name, "pid")
                assert (late.is_error, "not available" in late.text) == (True, True)
            await client.start_all()
        assert answers == ["to the end"]
        assert {status.state for status in client.statuses()} <= {"idle", "disabled"}


async def test_a_server_that_does_not_want_to_end_is_given_little_time_when_there_is_none() -> None:
    """It has two seconds to end by itself, and a third to end when asked, but not when everything ends now."""
    stubborn = stdio_entry("ignores_eof", "term")
    for hurried in ("before", "after"):
        async with _client({"stubborn": stubborn}) as client:
            assert await client.connect("stubborn")
            began = time.monotonic()
            async with anyio.create_task_group() as tasks:
                if hurried == "after":
                    tasks.start_soon(client.disconnect_all)
                    await anyio.sleep(0.3)
                client.hurry()
                tasks.start_soon(client.disconnect_all)
        assert 0.3 <= time.monotonic() - began < 2.3


async def test_an_unknown_or_disabled_name_is_not_connected() -> None:
    """A question that can be answered with no is answered with no."""
    async with _client({"off": _plain(enabled=False)}) as client:
        assert not await client.connect("nobody")
        assert not await client.connect("off")
        assert await client.prepare(["nobody", "off"]) == {"nobody": False, "off": False}
        await client.disconnect("nobody")
        with pytest.raises(KeyError):
            client.status("nobody")


# Lazy servers


@pytest.mark.requirement("B-07")
@pytest.mark.parametrize("how", ["by its settings", "in a one-shot run"])
async def test_a_lazy_server_is_known_from_the_last_time_and_started_at_first_use(tmp_path: Path, how: str) -> None:
    """Listing thirty servers' tools must not start thirty servers."""
    starts = tmp_path / "starts"
    entry = _plain("--starts", str(starts), lazy=how == "by its settings")
    options: dict[str, Any] = {"state": tmp_path, "lazy": how != "by its settings"}

    def count() -> int:
        return len(starts.read_text("ascii").split())

    async with _client({"s": entry}, **options) as client:
        assert await client.prepare() == {"s": True}
        assert count() == 1, "never listed before, it is started once to be listed"
    async with _client({"s": entry}, **options) as client:
        assert await client.prepare() == {"s": True}
        assert [tool.tool for tool in client.get_available_tools()] == ["echo", "pid"]
        assert (count(), client.status("s").state, client.status("s").tools) == (1, "idle", 2)
        answers = await asyncio.gather(*(client.call_tool("s", "echo", {"text": str(n)}) for n in range(5)))
        assert [answer.text for answer in answers] == ["0", "1", "2", "3", "4"]
        assert (count(), client.status("s").state) == (2, "ready")
    changed = {**entry, "args": [*entry["args"], "--delay", "0"]}
    async with _client({"s": changed}, **options) as client:
        await client.prepare()
        assert count() == 3, "another definition is another server"


@pytest.mark.requirement("B-07", "B-10")
async def test_a_call_to_a_lazy_server_that_hangs_at_start_ends_by_its_own_deadline(tmp_path: Path) -> None:
    """Connecting is part of the call, and the caller said how long."""
    hangs = tmp_path / "hangs"
    plain = plain_entry()
    script = f"test -e {hangs} && exec cat > /dev/null; exec {plain['command']} {' '.join(plain['args'])}"
    entry = {"command": "sh", "args": ["-c", script], "protocol": "legacy", "lazy": True}
    async with _client({"s": entry}, state=tmp_path) as client:
        await client.prepare()
    hangs.touch()
    async with _client({"s": entry}, state=tmp_path) as client:
        await client.prepare()
        began = time.monotonic()
        result = await client.call_tool("s", "echo", {"text": "hi"}, timeout=0.5)
        assert time.monotonic() - began < 2
        assert result.is_error
        assert "'s'" in result.text
        began = time.monotonic()
    assert time.monotonic() - began < 5


@pytest.mark.requirement("B-10")
async def test_a_first_call_that_takes_too_long_names_the_seconds_that_were_given(tmp_path: Path) -> None:
    """Starting the server counts; what was left of the time afterwards is a number that nobody has set."""
    entry = _plain("--each", "30", "--delay", "0.2", lazy=True) | {"request_timeout": 1.5}
    async with _client({"s": entry}, state=tmp_path) as client:
        await client.prepare()
    async with _client({"s": entry}, state=tmp_path) as client:
        await client.prepare()
        began = time.monotonic()
        result = await client.call_tool("s", "echo", {"text": "hi"})
        assert time.monotonic() - began < 2
    assert result.text == "'echo' of server 's' did not answer within 1.5 s; the server was told to stop"


# Calling


@pytest.mark.requirement("D-04")
async def test_a_call_to_what_is_not_there_says_so_and_what_was_perhaps_meant() -> None:
    """An agent that misspells gets a hint, not an exception."""
    async with _client({"plain": _plain(), "other": _plain()}) as client:
        await client.connect("plain")
        unknown_server = await client.call_tool("plane", "echo")
        assert unknown_server.text == "there is no server 'plane'; did you mean 'plain'?"
        unknown_tool = await client.call_tool("plain", "ecco")
        assert unknown_tool.text == "server 'plain' has no tool 'ecco'; did you mean 'echo'?"
        assert unknown_tool.failure is not None
        assert unknown_tool.failure.kind == "unknown_tool"
        idle = await client.call_tool("other", "echo")
        assert idle.text == "server 'other' is not available: it is not connected"
        for ask in (client.render_prompt, client.read_resource):
            with pytest.raises(MCPConnectionError, match="there is no server 'plane'"):
                await ask("plane", "x")
            with pytest.raises(MCPConnectionError, match="server 'other' is not available"):
                await ask("other", "x")


@pytest.mark.requirement("B-06", "D-04")
async def test_a_model_reads_of_a_missing_server_no_path_and_no_secret() -> None:
    """What goes into a model's context may come out anywhere."""
    async with _client({"s": {"command": "/opt/private/place/serve", "env": {"TOKEN": "s3cr3t-value"}}}) as client:
        assert not await client.connect("s")
        result = await client.call_tool("s", "act")
        assert result.text == "server 's' is not available: its command does not exist"
        assert "/opt/private/place/serve" in str(client.status("s").error), "a person wants to know which"


@pytest.mark.requirement("B-09")
async def test_calls_to_one_server_run_side_by_side(tmp_path: Path) -> None:
    """The second must not wait for the first to be answered."""
    heard = tmp_path / "heard"
    script: dict[str, Any] = {"tools/call": []}
    async with meeting(scripted(script, heard)) as client, anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(client.call_tool, "world", "act", {"n": number})
        await until(lambda: len(messages(heard, "tools/call")) == 20, what="twenty calls at the server")
        tasks.cancel_scope.cancel()


async def test_a_tool_of_the_registry_passes_its_deadline_and_its_listener_on(tmp_path: Path) -> None:
    """Whoever calls through the port has the same means as whoever calls by name."""
    news = {"raw": '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$id,"progress":1}}\n'}
    script = {"tools/call": [[news, {"result": {"content": []}}], []]}
    heard: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with meeting(scripted(script)) as client:
        (tool,) = client.registry.tools()
        assert not (await tool.execute({}, on_progress=on_progress)).is_error
        assert heard == [1]
        late = await tool.execute({}, timeout=0.1)
        assert late.failure is not None
        assert late.failure.kind == "timeout"


# Names, prompts and resources


@pytest.mark.requirement("C-02", "C-03", "C-04", "C-08")
async def test_tools_and_prompts_of_servers_that_share_names_are_told_apart() -> None:
    """Server `a_b` with tool `c` and server `a` with tool `b_c` both work."""
    initialized = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "x", "version": "1"},
    }

    def server(name: str) -> dict[str, Any]:
        text = {"content": [{"type": "text", "text": f"this is {name}"}]}
        return scripted(
            {
                "initialize": [{"result": initialized}],
                "tools/list": [{"result": {"tools": [{"name": name, "inputSchema": {}}]}}],
                "tools/call": [{"result": text}],
                "prompts/list": [{"result": {"prompts": [{"name": name}, {"name": "p"}]}}],
                "resources/list": [{"result": {"resources": [{"uri": f"{name}://x"}]}}],
            }
        )

    async with _client({"a_b": server("c"), "a": server("b_c")}) as client:
        await client.connect_all()
        names = [tool.name for tool in client.get_available_tools()]
        assert len(set(names)) == 2
        assert all(name.startswith("mcp_a_b_c-") for name in names)
        assert (await client.call_tool("a_b", "c")).text == "this is c"
        prompts = {(prompt.server, prompt.prompt): prompt.name for prompt in client.get_prompts()}
        assert prompts["a", "p"] == "mcp_a_p"
        assert prompts["a", "b_c"] != prompts["a_b", "c"]
        assert [prompt.prompt for prompt in client.get_prompts("a")] == ["b_c", "p"]
        assert {resource.uri for resource in client.get_resources()} == {"b_c://x", "c://x"}
        assert [resource.uri for resource in client.get_resources("a_b")] == ["c://x"]
        await client.disconnect("a")
        assert [tool.name for tool in client.get_available_tools()] == ["mcp_a_b_c"]
        assert [prompt.server for prompt in client.get_prompts()] == ["a_b", "a_b"]


# What is heard


@pytest.fixture
def records() -> Iterator[list[tuple[int, str, Any]]]:
    """What is logged meanwhile: severity, words, server."""
    found: list[tuple[int, str, Any]] = []

    def note(line: Any) -> None:
        record = line.record
        found.append((record["level"].no, record["message"], record["extra"].get("server")))

    sink = logger.add(note, level=0)
    logger.enable("squidbot")
    yield found
    logger.remove(sink)


@pytest.mark.requirement("G-06")
async def test_a_servers_log_comes_out_of_ours_with_its_name_and_level_in_one_line(
    records: list[tuple[int, str, Any]],
) -> None:
    """Eight levels of the protocol, each with its place among ours, and nothing that could forge a line."""
    said = [
        {
            "send": {
                "method": "notifications/message",
                "params": {"level": level, "data": f"at\n{level}", "logger": "db"},
            }
        }
        for level in LOG_SEVERITY
    ]
    more = {"send": {"method": "notifications/message", "params": {"level": "info", "data": {"n": 1, "é": None}}}}
    script = {"tools/call": [*said, more, {"result": {"content": []}}]}
    async with meeting(scripted(script)) as client:
        await client.call_tool("world", "act")
        await until(lambda: any("[world] {" in words for _, words, _ in records), what="the last message")
    heard = [record for record in records if record[1].startswith("[world")]
    assert heard[:8] == [(number, f"[world.db] at {level}", "world") for level, number in LOG_SEVERITY.items()]
    assert heard[8] == (20, '[world] {"n": 1, "é": null}', "world")


@pytest.mark.requirement("G-06")
async def test_notifications_and_states_can_be_subscribed_to() -> None:
    """A dashboard lives on events."""
    events: list[ServerEvent] = []
    script = {"tools/call": [{"send": {"method": "notifications/tools/list_changed"}}, {"result": {"content": []}}]}
    async with meeting(scripted(script), on_event=events.append) as client:
        await client.call_tool("world", "act")
        await until(lambda: any(event.kind == "notification" for event in events), what="the notification")
    seen = [(event.server, event.kind, event.method or event.state) for event in events]
    assert seen[:3] == [
        ("world", "state", "connecting"),
        ("world", "state", "ready"),
        ("world", "notification", "notifications/tools/list_changed"),
    ]
    assert seen[-1] == ("world", "state", "idle")
