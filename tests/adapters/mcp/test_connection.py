"""One live server: it is kept up, its end is noticed, it comes back, and no call is ever sent twice."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from squidbot import BinaryContent, MCPConnection, MCPConnectionError, TextContent
from squidbot.adapters.mcp import attendant, dispatcher
from squidbot.adapters.mcp.callbacks import Callbacks
from squidbot.adapters.mcp.opening import Surroundings
from squidbot.adapters.schemas.checker import JSONSchemaCheck
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPProtocolError, MCPRequestRefused
from squidbot.core.domain.servers import ServerEvent
from tests.adapters.mcp.certificates import Authority
from tests.adapters.mcp.processes import alive, descriptors, messages, scripted
from tests.fixtures.running import Entry, plain_entry, until

pytestmark = pytest.mark.anyio

EVERYTHING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True},
        "completions": {},
    },
    "serverInfo": {"name": "x", "version": "1.0", "title": "X"},
    "instructions": "Be brief.",
}


def _connection(entry: Mapping[str, Any], around: Surroundings | None = None) -> MCPConnection:
    return MCPConnection(MCPServerConfig(name="s", **entry), around)


@asynccontextmanager
async def connected(entry: Mapping[str, Any], around: Surroundings | None = None) -> AsyncIterator[MCPConnection]:
    """A connection that is up, and that is stopped afterwards."""
    connection = _connection(entry, around)
    await connection.start()
    try:
        yield connection
    finally:
        await connection.stop()


def _plain(*options: str) -> Entry:
    return {**plain_entry(*options), "protocol": "legacy"}


async def _pid(connection: MCPConnection) -> int:
    return int((await connection.call_tool("pid")).text)


def _is(connection: MCPConnection, state: str) -> bool:
    return connection.status.state == state


# Start and stop


@pytest.mark.requirement("B-12")
async def test_it_can_be_started_used_and_stopped_from_any_task_and_again() -> None:
    """Programs start things in one place and stop them in another."""
    before = descriptors()
    connection = _connection(_plain())
    pids = []
    for _ in range(2):
        await asyncio.create_task(connection.start())
        pids.append(await asyncio.create_task(_pid(connection)))
        await connection.start()
        assert await _pid(connection) == pids[-1], "starting what is started must change nothing"
        await asyncio.create_task(connection.stop())
        await connection.stop()
        assert _is(connection, "idle")
    assert pids[0] != pids[1]
    assert not any(alive(pid) for pid in pids)
    assert descriptors() <= before + 1  # the loop's own


@pytest.mark.requirement("B-12")
async def test_stopping_a_server_that_hangs_at_start_does_not_wait_for_it() -> None:
    """Ctrl-C must not take thirty seconds."""
    connection = _connection(scripted({"initialize": []}))
    opening = asyncio.create_task(connection.open())
    await until(lambda: _is(connection, "connecting"), what="the start")
    began = time.monotonic()
    await connection.stop()
    assert time.monotonic() - began < 4
    assert not await opening


@pytest.mark.requirement("B-12")
async def test_stopping_and_starting_at_the_same_time_leaves_one_server_or_none(tmp_path: Path) -> None:
    """Two tasks that disagree must not leave a process that nobody owns."""
    starts = tmp_path / "starts"
    connection = _connection(_plain("--starts", str(starts)))
    await connection.start()
    await asyncio.gather(connection.stop(), connection.open(), connection.stop(), connection.open())
    running = [pid for pid in map(int, starts.read_text().split()) if alive(pid)]
    assert len(running) == 1
    assert await _pid(connection) == running[0]
    await connection.stop()
    assert not alive(running[0])


@pytest.mark.requirement("B-06")
async def test_a_start_that_fails_raises_in_words_and_leaves_nothing(logged: list[str]) -> None:
    """Whoever starts a server must learn which, how it was started, how it ended, what it said and what to try."""
    secret = "s3cr3t-t0ken-value"
    script = {"start": [{"stderr": f"cannot open the database with {secret}\n"}, {"exit": 3}]}
    connection = _connection({**scripted(script), "max_retries": 0, "env": {"API_TOKEN": secret}})
    with pytest.raises(MCPConnectionError, match="it exited with code 3") as error:
        await connection.start()
    assert _is(connection, "idle")
    (warning,) = logged
    for part in ("'s'", repr(connection.config.command), "code 3", "cannot open the database", "by hand"):
        assert part in warning
    assert secret not in warning + str(error.value) + str(error.value.hint)


@pytest.mark.requirement("B-06")
async def test_a_start_that_takes_too_long_ends_with_the_last_words_of_the_server() -> None:
    """It may have said on stderr what it waits for."""
    script = {"start": [{"stderr": "waiting for a licence\n"}], "initialize": []}
    with pytest.raises(MCPConnectionError, match=r"did not answer within 0\.6 s") as error:
        await _connection(scripted(script, startup_timeout=0.6, max_retries=0)).start()
    assert "waiting for a licence" in str(error.value)


@pytest.mark.requirement("B-14")
async def test_an_introduction_that_is_too_heavy_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It would be as heavy the next time, and the time after that."""
    monkeypatch.setattr(dispatcher, "_INTRODUCTION", 1_000)
    capabilities = {"tools": {}, "experimental": {"x": {"y": [0] * 1_000}}}
    script = {"initialize": [{"result": {**EVERYTHING, "capabilities": capabilities}}]}
    heard = tmp_path / "heard"
    connection = _connection(scripted(script, heard))
    with pytest.raises(MCPConnectionError, match="more than 1000 values"):
        await connection.start()
    await connection.stop()
    assert len(messages(heard, "initialize")) == 1


@pytest.mark.requirement("B-08")
async def test_a_server_that_fails_at_first_is_tried_again_within_the_same_start(tmp_path: Path) -> None:
    """A database that is up a second later is no reason to give up."""
    plain, mark = plain_entry(), tmp_path / "mark"
    script = f"test -e {mark} || {{ touch {mark}; exit 1; }}; exec {plain['command']} {' '.join(plain['args'])}"
    async with connected({"command": "sh", "args": ["-c", script], "protocol": "legacy"}) as connection:
        assert connection.status.counters["restarts"] == 1
        assert (await connection.call_tool("echo", {"text": "hi"})).text == "hi"


async def test_a_variable_that_is_missing_is_named_to_people_and_not_to_models() -> None:
    """Settings are checked at load; what changes afterwards must still end in words."""
    connection = _connection({"command": "true", "env": {"A": "${NO_SUCH_VARIABLE_HERE}"}})
    assert not await connection.open()
    assert "NO_SUCH_VARIABLE_HERE" in str(connection.status.error)
    assert connection.reason == "its settings are incomplete"
    await connection.stop()


# The end of a server


@pytest.mark.requirement("B-08")
async def test_a_server_that_dies_is_noticed_at_once_answers_not_available_and_comes_back() -> None:
    """An agent must learn why it has no answer, and have its tools again without anybody's help."""
    events: list[ServerEvent] = []
    async with connected(_plain(), Surroundings(callbacks=Callbacks(on_event=events.append))) as connection:
        first = await _pid(connection)
        os.kill(first, signal.SIGKILL)
        await until(lambda: _is(connection, "degraded"), what="the loss to be noticed", within=2)
        refused = await connection.call_tool("echo", {"text": "hi"})
        assert refused.text == "server 's' is not available: it was killed by SIGKILL"
        assert refused.failure is not None
        assert refused.failure.kind == "unavailable"
        assert list(connection.catalogue.tools) == ["echo", "pid"], "its tools stay listed meanwhile"
        await until(lambda: _is(connection, "ready"), what="the server to come back", within=5)
        assert await _pid(connection) != first
        assert connection.status.counters["restarts"] == 1
    states = [event.state for event in events if event.kind == "state"]
    assert states == ["connecting", "ready", "degraded", "ready", "idle"]


@pytest.mark.requirement("B-08", "D-04")
async def test_a_call_that_kills_its_server_is_an_error_and_is_never_sent_again(tmp_path: Path) -> None:
    """A payment that crashed half-way must not be made twice, whatever the tool says of itself."""
    heard = tmp_path / "heard"
    tools = [{"name": "act", "inputSchema": {}, "annotations": {"idempotentHint": True, "readOnlyHint": True}}]
    script = {"tools/list": [{"result": {"tools": tools}}], "tools/call": [{"exit": 9}]}
    async with connected(scripted(script, heard)) as connection:
        result = await connection.call_tool("act", {"n": 1})
        assert result.text == "server 's' is not available: it exited with code 9"
        await until(lambda: _is(connection, "ready") and connection.status.counters["restarts"], what="its return")
    assert len(messages(heard, "initialize")) == 2
    assert len(messages(heard, "tools/call")) == 1


@pytest.mark.requirement("B-08")
async def test_a_server_that_closes_its_output_is_started_anew(tmp_path: Path) -> None:
    """It lives, but it will never answer."""
    heard = tmp_path / "heard"
    async with connected(scripted({"tools/call": [{"close": True}]}, heard)) as connection:
        result = await connection.call_tool("act")
        assert "it closed its output" in result.text
        await until(lambda: len(messages(heard, "initialize")) == 2, what="the second start")


@pytest.mark.requirement("B-10")
async def test_a_server_that_answers_nothing_any_more_is_ended_and_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that spins or hangs would fail every call by its deadline for ever."""
    monkeypatch.setattr(attendant, "_PROBE", 0.2)
    heard = tmp_path / "heard"
    async with connected(scripted({"tools/call": [], "ping": []}, heard, request_timeout=0.3)) as connection:
        result = await connection.call_tool("act")
        assert result.text == "'act' of server 's' did not answer within 0.3 s; the server was told to stop"
        await until(lambda: len(messages(heard, "initialize")) == 2, what="the second start")
        (call,) = messages(heard, "tools/call")
        told = [message["params"]["requestId"] for message in messages(heard, "notifications/cancelled")]
        assert call["id"] in told
        await until(lambda: _is(connection, "ready"), what="its return")


@pytest.mark.requirement("B-10")
async def test_a_server_that_is_only_slow_is_left_alone(tmp_path: Path) -> None:
    """It answers when it is asked whether it is there."""
    heard = tmp_path / "heard"
    async with connected(scripted({"tools/call": []}, heard, request_timeout=0.2)) as connection:
        await connection.call_tool("act")
        await until(lambda: messages(heard, "ping"), what="the question")
        assert (await connection.list_tools())[0].tool == "act"
        assert connection.status.counters["restarts"] == 0


async def test_a_server_that_fails_call_after_call_is_spared_and_callers_are_told_when_to_come_back() -> None:
    """Nobody should wait for a deadline to learn what the last five callers learnt, nor look for why in a log."""
    async with connected(scripted({"tools/call": []}, request_timeout=0.05)) as connection:
        for _ in range(5):
            assert "did not answer" in (await connection.call_tool("act")).text
        assert connection.status.state == "degraded"
        assert "5 calls in a row failed" in (connection.status.error or "")
        refused = await connection.call_tool("act")
    assert "5 calls in a row failed, the last with: 'act' of server 's' did not answer within 0.05 s" in refused.text
    assert refused.failure is not None
    assert refused.failure.kind == "unavailable"
    assert 9 < (refused.failure.retry_after or 0) <= 10


# Changes


@pytest.mark.requirement("C-05")
async def test_a_storm_of_announced_changes_is_a_few_looks_and_ends_with_the_truth(tmp_path: Path) -> None:
    """A thousand announcements must not become a thousand lists, and the last change must be seen."""
    heard = tmp_path / "heard"
    events: list[ServerEvent] = []
    changed = {"send": {"method": "notifications/tools/list_changed"}}
    tools = [
        [{"result": {"tools": [{"name": name, "inputSchema": {}} for name in names]}}]
        for names in (["act", "old"], ["act", "new"])
    ]
    script = {"tools/list": tools, "tools/call": [*[changed] * 500, {"result": {"content": []}}]}
    async with connected(
        scripted(script, heard), Surroundings(callbacks=Callbacks(on_event=events.append))
    ) as connection:
        assert list(connection.catalogue.tools) == ["act", "old"]
        await connection.call_tool("act")
        await until(lambda: list(connection.catalogue.tools) == ["act", "new"], what="the change")
    assert 2 <= len(messages(heard, "tools/list")) <= 4
    assert [event.kind for event in events].count("tools_changed") == 1


@pytest.mark.requirement("C-05")
async def test_prompts_that_change_are_listed_again_and_a_list_that_fails_keeps_the_old_one(
    tmp_path: Path, logged: list[str]
) -> None:
    """A failing list says nothing about what there is."""
    prompts = [
        [{"result": {"prompts": [{"name": "one"}]}}],
        [{"error": {"code": -1, "message": "busy"}}],
        [{"result": {"prompts": [{"name": "two"}]}}],
    ]
    changed = {"send": {"method": "notifications/prompts/list_changed"}}
    script = {
        "initialize": [{"result": EVERYTHING}],
        "prompts/list": prompts,
        "tools/call": [changed, {"result": {"content": []}}],
    }
    heard = tmp_path / "heard"
    async with connected(scripted(script, heard)) as connection:
        await connection.call_tool("act")
        await until(lambda: len(messages(heard, "prompts/list")) == 2, what="the second look")
        await until(lambda: logged, what="the warning")
        assert [prompt.prompt for prompt in connection.catalogue.prompts] == ["one"]
        await connection.call_tool("act")
        await until(lambda: [p.prompt for p in connection.catalogue.prompts] == ["two"], what="the new prompt")
    assert "busy" in logged[0]


# Prompts, resources, completions


@pytest.mark.requirement("C-04", "C-08")
async def test_prompts_resources_and_completions_are_asked_for_and_read() -> None:
    """All that a server offers beside tools."""
    script = {
        "initialize": [{"result": EVERYTHING}],
        "prompts/list": [{"result": {"prompts": [{"name": "greet"}]}}],
        "prompts/get": [{"result": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}]}}],
        "resources/list": [{"result": {"resources": [{"uri": "a://b"}]}}],
        "resources/templates/list": [{"result": {"resourceTemplates": [{"uriTemplate": "a://{x}"}]}}],
        "resources/read": [{"result": {"contents": [{"uri": "a://b", "text": "words"}]}}],
        "completion/complete": [[{"result": {"completion": {"values": ["x"]}}}], [{"result": {}}]],
    }
    async with connected(scripted(script)) as connection:
        assert [prompt.prompt for prompt in connection.catalogue.prompts] == ["greet"]
        assert [resource.uri for resource in connection.catalogue.resources] == ["a://b", "a://{x}"]
        rendered = await connection.render_prompt("greet", {"name": "Ada"})
        assert rendered.messages[0].content == TextContent("Hi")
        read = await connection.read_resource("a://b")
        assert read.content == (BinaryContent("a://b", "embedded", text="words"),)
        assert read.raw["contents"][0]["uri"] == "a://b"
        assert await connection.complete({}) == {"values": ["x"]}
        assert await connection.complete({}) == {}
        status = connection.status
        assert (status.instructions, status.info["title"]) == ("Be brief.", "X")


@pytest.mark.requirement("B-14")
async def test_a_prompt_and_a_resource_have_no_more_parts_than_a_tools_answer() -> None:
    """Each part is looked at, and a hundred thousand of them stop everybody."""
    part = {"role": "user", "content": {"type": "text", "text": "x"}, "uri": "a://b"}
    script = {
        "initialize": [{"result": EVERYTHING}],
        "prompts/get": [{"result": {"messages": [part] * 6}}],
        "resources/read": [[{"result": {"contents": [part] * 6}}], [{"result": {"contents": [part] * 5}}]],
    }
    async with connected(scripted(script, bounds={"blocks": 5})) as connection:
        with pytest.raises(MCPProtocolError, match=r"server 's', prompt 'p': the answer has 6 blocks, too many"):
            await connection.render_prompt("p")
        with pytest.raises(MCPProtocolError, match=r"resource 'a://b': the answer has 6 blocks, too many \(limit 5\)"):
            await connection.read_resource("a://b")
        assert len((await connection.read_resource("a://b")).content) == 5


@pytest.mark.requirement("C-08")
async def test_updates_of_a_subscribed_resource_are_heard(tmp_path: Path) -> None:
    """Whoever subscribed must not read a stale text for ever."""
    heard = tmp_path / "heard"
    updated = {"send": {"method": "notifications/resources/updated", "params": {"uri": "a://b"}}}
    script = {
        "initialize": [{"result": EVERYTHING}],
        "resources/subscribe": [{"result": {}}, updated],
        "resources/unsubscribe": [{"result": {}}],
    }
    events: list[ServerEvent] = []
    async with connected(
        scripted(script, heard), Surroundings(callbacks=Callbacks(on_event=events.append))
    ) as connection:
        await connection.subscribe("a://b")
        await until(lambda: any(event.kind == "resource_updated" for event in events), what="the update")
        await connection.subscribe("a://b", wanted=False)
    assert next(event.params for event in events if event.kind == "resource_updated") == {"uri": "a://b"}
    assert [message["params"] for message in messages(heard, "resources/unsubscribe")] == [{"uri": "a://b"}]


async def test_what_the_server_refuses_what_it_garbles_and_what_it_is_not_there_for_are_told_apart() -> None:
    """The exit code of the command line depends on it."""
    script = {
        "initialize": [{"result": EVERYTHING}],
        "prompts/get": [{"error": {"code": -32602, "message": "'name' is missing"}}],
        "resources/read": [{"raw": '{"jsonrpc": "2.0", "id": $id}\n'}],
        "resources/subscribe": [{"exit": 5}],
        "tools/list": [[{"result": {"tools": []}}], [{"error": {"code": -1, "message": "no more"}}]],
    }
    async with connected(scripted(script, max_retries=0)) as connection:
        with pytest.raises(MCPRequestRefused, match="server 's', prompt 'p': 'name' is missing"):
            await connection.render_prompt("p")
        with pytest.raises(MCPProtocolError, match="neither a result nor an error"):
            await connection.read_resource("a://b")
        with pytest.raises(MCPRequestRefused, match="tools/list: no more"):
            await connection.list_tools()
        with pytest.raises(MCPConnectionError, match="it exited with code 5"):
            await connection.subscribe("a://b")
    with pytest.raises(MCPConnectionError, match="server 's', tools/list: it is not connected"):
        await connection.list_tools()
    with pytest.raises(MCPConnectionError, match="server 's', resource 'a://b': it is not connected"):
        await connection.subscribe("a://b")


# Results


@pytest.mark.requirement("D-05")
async def test_structured_content_is_held_against_the_schema_of_the_list() -> None:
    """The schema that counts is the one that the server published."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    text = [{"type": "text", "text": "words"}]
    script = {
        "tools/list": [{"result": {"tools": [{"name": "act", "inputSchema": {}, "outputSchema": schema}]}}],
        "tools/call": [
            [{"result": {"content": text, "structuredContent": {"n": 1}}}],
            [{"result": {"content": text, "structuredContent": {"n": "x"}}}],
        ],
    }
    async with connected(scripted(script), Surroundings(schemas=JSONSchemaCheck())) as connection:
        assert (await connection.call_tool("act")).structured == {"n": 1}
        bad = await connection.call_tool("act")
    assert bad.is_error
    assert bad.text.startswith("words\n[the structured content of 'act' does not fit")


@pytest.mark.requirement("B-14", "D-02", "D-04")
@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([{"raw": '{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"' + "x" * 60_000 + '"}]}}\n'}], "too large (limit 50000 bytes)"),
        ([{"result": {"content": [{"type": "text", "text": "x"}] * 6}}], "6 blocks, too many (limit 5)"),
        ([{"raw": '{"jsonrpc":"2.0","id":$id,"result":' + '{"a":' * 60 + "1" + "}" * 60 + "}\n"}], "nested more than 50 deep"),
        ([{"raw": "Traceback (most recent call last):\n"}, {"result": {"content": "?"}}], "content that is no list"),
        ([{"result": {}}], ""),
        ([{"raw": '[{"jsonrpc":"2.0","id":$id,"result":{}}]\n'}], "a batch"),
        ([{"raw": '{\n  "jsonrpc": "2.0",\n  "id": $id,\n  "result": {}\n}\n'}], "cannot be read"),
        ([{"error": {"code": -32000, "message": "gone"}}], "server 's', tool 'act': gone"),
    ],
    ids=["large", "blocks", "deep", "no list", "empty", "batch", "pretty", "error"],
)  # fmt: skip
async def test_an_odd_answer_costs_its_own_call_at_most_and_the_next_one_works(steps: list[Any], words: str) -> None:
    """Over a bound: a clear error for that call, nothing else."""
    good = [{"result": {"content": [{"type": "text", "text": "fine"}]}}]
    entry = scripted({"tools/call": [steps, good]}, bounds={"bytes": 50_000, "blocks": 5, "depth": 50})
    async with connected(entry) as connection:
        with anyio.fail_after(5):
            odd = await connection.call_tool("act")
        assert words in odd.text
        assert (await connection.call_tool("act")).text == "fine"
        assert connection.status.counters["restarts"] == 0


@pytest.mark.deadline(20)
@pytest.mark.parametrize(("transport", "scheme"), [("http", "https"), ("sse", "https"), ("websocket", "wss")])
@pytest.mark.parametrize("kind", ["untrusted", "plain"])
async def test_tls_that_will_not_mend_itself_is_told_of_at_once(
    transport: str, scheme: str, kind: str, tmp_path: Path
) -> None:
    """A certificate is the same a moment later: whoever waits for the start is not kept waiting until its deadline."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" if await reader.read(4096) else b"")
        writer.close()

    tls = Authority(tmp_path).server() if kind == "untrusted" else None
    async with await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        url = f"{scheme}://127.0.0.1:{port}/"
        connection = _connection({"transport": transport, "url": url, "startup_timeout": 300, "timeout": 300})
        try:
            said = "is not trusted" if kind == "untrusted" else "no TLS with"
            with pytest.raises(MCPConnectionError, match=f"127.0.0.1:{port}.*{said}|{said}.*127.0.0.1:{port}") as why:
                await connection.start()
            assert why.value.permanent
            assert why.value.hint
        finally:
            await connection.stop()
