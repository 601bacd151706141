"""Servers that other people wrote: connected, listed and really used, over each transport that they offer."""

import functools
import http.server
import os
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from squidbot import DEFAULT_MCP_SERVERS, AudioContent, BinaryContent, ImageContent, MCPClient, TextContent
from tests.fixtures.meeting import meeting
from tests.fixtures.needs import peer
from tests.fixtures.running import BEAT, START, Entry, program
from tests.peers.install import node_program, python_program

pytestmark = [pytest.mark.anyio, pytest.mark.peers, pytest.mark.requirement("C-01")]

EVERYTHING = "@modelcontextprotocol/server-everything"
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


def _python(environment: str, name: str, *args: str) -> Entry:
    command, *rest = peer(lambda: python_program(environment, name))
    return {"command": command, "args": [*rest, *args]}


def _node(package: str, *args: str, **env: str) -> Entry:
    command, *rest = peer(lambda: node_program(package))
    return {"command": command, "args": [*rest, *args], "env": env}


@contextmanager
def _listening(entry: Entry, *, port: int) -> Iterator[None]:
    """Run a program while it listens on `port`."""
    with program([entry["command"], *entry["args"]], env=entry["env"]) as process:
        deadline = time.monotonic() + START
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, f"it ended with code {process.returncode} before it listened"
                assert time.monotonic() < deadline, f"nobody listened on port {port} within {START:g} s"
                time.sleep(BEAT)
        yield


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _use(client: MCPClient, tool: str, **arguments: Any) -> str:
    """The text of a call that must succeed."""
    result = await client.call_tool("world", tool, arguments)
    assert not result.is_error, result.text
    return result.text


def _git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=folder, env=os.environ | IDENTITY, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.requirement("B-01", "B-05")
async def test_mcp_server_git_works_on_a_real_repository(tmp_path: Path) -> None:
    """A server of the stateless era on the SDK that we stand on."""
    _git(tmp_path, "init", "--quiet", "--initial-branch=main")
    _git(tmp_path, "commit", "--quiet", "--allow-empty", "--message=the first")
    (tmp_path / "new.txt").write_text("new\n", encoding="utf-8")
    entry = _python("modern", "mcp-server-git", "--repository", str(tmp_path)) | {"env": IDENTITY}
    async with meeting(entry) as client:
        assert client.status("world").protocol == "2026-07-28"
        assert len(client.get_available_tools("world")) == 12
        repository = str(tmp_path)
        assert "new.txt" in await _use(client, "git_status", repo_path=repository)
        await _use(client, "git_add", repo_path=repository, files=["new.txt"])
        await _use(client, "git_commit", repo_path=repository, message="the second")
        assert "the second" in await _use(client, "git_log", repo_path=repository)
        outside = await client.call_tool("world", "git_status", {"repo_path": "/"})
        assert outside.is_error
    assert "the second" in _git(tmp_path, "log", "--format=%s")


async def test_mcp_server_time_converts_between_zones() -> None:
    """Its answers carry structured content."""
    async with meeting(_python("modern", "mcp-server-time")) as client:
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        result = await client.call_tool("world", "convert_time", arguments)
        assert not result.is_error
        assert "21:00" in result.text
        assert result.structured["time_difference"].startswith("+9")
        assert (await client.call_tool("world", "get_current_time", {"timezone": "Nowhere/Atall"})).is_error


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        pass


@contextmanager
def _pages(folder: Path) -> Iterator[str]:
    """The files of a folder, served to whoever asks."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_QuietHandler, directory=folder)) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{pages.server_port}"
        finally:
            pages.shutdown()
            thread.join()


async def test_mcp_server_fetch_reads_a_page_and_has_a_prompt(tmp_path: Path) -> None:
    """A tool that itself waits for the network, and a prompt that does."""
    (tmp_path / "page.html").write_text("<html><body><p>Ten tentacles.</p></body></html>", encoding="utf-8")
    entry = _python("modern", "mcp-server-fetch", "--allow-private-ips", "--ignore-robots-txt")
    with _pages(tmp_path) as site:
        async with meeting(entry) as client:
            url = f"{site}/page.html"
            assert "Ten tentacles." in await _use(client, "fetch", url=url, raw=True)
            assert [prompt.prompt for prompt in client.get_prompts("world")] == ["fetch"]
            rendered = await client.render_prompt("world", "fetch", {"url": url})
            assert isinstance(rendered.messages[0].content, TextContent)
            assert "tentacles" in rendered.messages[0].content.text


@pytest.mark.requirement("B-05", "C-08")
async def test_mcp_server_sqlite_creates_fills_and_reads_a_table(tmp_path: Path) -> None:
    """A server on the old SDK, of the handshake era, with a prompt and a resource."""
    entry = _python("legacy", "mcp-server-sqlite", "--db-path", str(tmp_path / "squid.db"))
    async with meeting(entry) as client:
        assert client.status("world").protocol == "2025-11-25"
        await _use(client, "create_table", query="CREATE TABLE squid (name TEXT, arms INTEGER)")
        await _use(client, "write_query", query="INSERT INTO squid VALUES ('Humboldt', 10)")
        assert "Humboldt" in await _use(client, "read_query", query="SELECT * FROM squid")
        assert "squid" in await _use(client, "list_tables")
        await _use(client, "append_insight", insight="Squid have ten.")
        (memo,) = await client.read_resource("world", "memo://insights")
        assert isinstance(memo, BinaryContent)
        assert "Squid have ten." in (memo.text or "")
        rendered = await client.render_prompt("world", "mcp-demo", {"topic": "molluscs"})
        assert "molluscs" in str(rendered.messages[0].content)


async def _meets_everything(client: MCPClient) -> None:
    """Each kind of answer that server-everything can give."""
    assert len(client.get_available_tools("world")) >= 13
    assert await _use(client, "echo", message="hello") == "Echo: hello"
    assert "5" in await _use(client, "get-sum", a=2, b=3)
    image = await client.call_tool("world", "get-tiny-image")
    assert any(isinstance(block, ImageContent) and block.data.startswith(b"\x89PNG") for block in image.content)
    annotated = await client.call_tool("world", "get-annotated-message", {"messageType": "error", "includeImage": True})
    assert [type(block) for block in annotated.content] == [TextContent, ImageContent]
    links = await client.call_tool("world", "get-resource-links", {"count": 3})
    assert sum(isinstance(block, BinaryContent) and block.kind == "link" for block in links.content) == 3
    embedded = await client.call_tool("world", "get-resource-reference", {"resourceType": "Blob", "resourceId": 2})
    assert any(isinstance(block, BinaryContent) and block.data for block in embedded.content)
    weather = await client.call_tool("world", "get-structured-content", {"location": "Chicago"})
    assert set(weather.structured) == {"temperature", "conditions", "humidity"}
    heard: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    slow = await client.call_tool(
        "world", "trigger-long-running-operation", {"duration": 0.4, "steps": 2}, on_progress=on_progress
    )
    assert not slow.is_error
    assert heard
    unfit = await client.call_tool("world", "get-sum", {"a": "no number"})
    assert unfit.is_error
    prompts = {prompt.prompt for prompt in client.get_prompts("world")}
    assert "simple-prompt" in prompts
    rendered = await client.render_prompt("world", "args-prompt", {"city": "Boston", "state": "MA"})
    assert "Boston" in str(rendered.messages[0].content)
    resources = client.get_resources("world")
    assert any(resource.is_template for resource in resources)
    document = next(resource for resource in resources if not resource.is_template)
    (content,) = await client.read_resource("world", document.uri)
    assert isinstance(content, BinaryContent)
    assert content.text


@pytest.mark.requirement("B-01")
async def test_server_everything_works_over_stdio() -> None:
    """The protocol's own reference server, in another language."""
    async with meeting(_node(EVERYTHING, "stdio")) as client:
        await _meets_everything(client)


@pytest.mark.requirement("B-04")
async def test_server_everything_works_over_streamable_http() -> None:
    """The same server must not look different over another transport."""
    port = _free_port()
    with _listening(_node(EVERYTHING, "streamableHttp", PORT=str(port)), port=port):
        async with meeting({"url": f"http://127.0.0.1:{port}/mcp"}) as client:
            await _meets_everything(client)


@pytest.mark.requirement("A-02", "B-02")
@pytest.mark.parametrize("named", [{"transport": "sse"}, {}], ids=["named", "found by falling back from http"])
async def test_server_everything_works_over_sse(named: Entry) -> None:
    """The transport of before streamable HTTP; an entry that only has a url finds it by itself."""
    port = _free_port()
    with _listening(_node(EVERYTHING, "sse", PORT=str(port)), port=port):
        async with meeting({"url": f"http://127.0.0.1:{port}/sse", **named}) as client:
            await _meets_everything(client)


@pytest.mark.requirement("B-03")
async def test_server_everything_works_over_a_websocket_of_supergateway() -> None:
    """Somebody else's WebSocket server, in front of somebody else's MCP server."""
    port = _free_port()
    inner = _node(EVERYTHING, "stdio")
    command = shlex.join([inner["command"], *inner["args"]])
    options = ("--outputTransport", "ws", "--port", str(port), "--messagePath", "/message")
    with _listening(_node("supergateway", "--stdio", command, *options), port=port):
        async with meeting({"url": f"ws://127.0.0.1:{port}/message"}) as client:
            assert client.status("world").transport == "websocket"
            await _meets_everything(client)


async def test_server_filesystem_reads_and_writes_text_pictures_and_sound(tmp_path: Path) -> None:
    """Binary content from a real file arrives as its bytes."""
    folder = tmp_path
    (folder / "pixel.png").write_bytes(PIXEL)
    (folder / "beep.wav").write_bytes(b"RIFF0000WAVE")
    async with meeting(_node("@modelcontextprotocol/server-filesystem", str(folder))) as client:
        await _use(client, "write_file", path=str(folder / "note.txt"), content="ten arms\n")
        assert (folder / "note.txt").read_text(encoding="utf-8") == "ten arms\n"
        assert "ten arms" in await _use(client, "read_text_file", path=str(folder / "note.txt"))
        assert "pixel.png" in await _use(client, "list_directory", path=str(folder))
        picture = await client.call_tool("world", "read_media_file", {"path": str(folder / "pixel.png")})
        assert picture.content == (ImageContent(PIXEL, "image/png"),)
        sound = await client.call_tool("world", "read_media_file", {"path": str(folder / "beep.wav")})
        assert sound.content == (AudioContent(b"RIFF0000WAVE", "audio/wav"),)
        outside = await client.call_tool("world", "read_text_file", {"path": "/etc/hostname"})
        assert outside.is_error


async def test_server_memory_keeps_what_it_is_told(tmp_path: Path) -> None:
    """Nested arguments arrive whole, and the environment of the entry reaches the server."""
    file = tmp_path / "memory.jsonl"
    async with meeting(_node("@modelcontextprotocol/server-memory", MEMORY_FILE_PATH=str(file))) as client:
        entity = {"name": "Squid", "entityType": "animal", "observations": ["has ten arms"]}
        await _use(client, "create_entities", entities=[entity])
        found = await client.call_tool("world", "search_nodes", {"query": "ten arms"})
        assert "Squid" in found.text
    assert "has ten arms" in file.read_text(encoding="utf-8")


@pytest.mark.requirement("F-04", "A-06")
async def test_the_vendors_search_server_is_the_one_that_the_built_in_brave_names() -> None:
    """A definition that starts nothing is worse than none. It lists its tools with any key; nothing is searched here."""
    package, version = "@brave/brave-search-mcp-server", "2.1.4"
    named = DEFAULT_MCP_SERVERS["brave"]
    assert named.command == "npx"
    assert f"{package}@{version}" in named.args
    command, *rest = peer(lambda: node_program(package, environment="brave"))
    env = {"BRAVE_API_KEY": "no-key-of-anybody"}
    entry = {
        "command": command,
        "args": [*rest, *named.args[named.args.index(f"{package}@{version}") + 1 :]],
        "env": env,
    }
    async with meeting(entry) as client:
        assert "brave_web_search" in {tool.tool for tool in client.get_available_tools()}
