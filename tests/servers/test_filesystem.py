"""The filesystem server as a client meets it: over the wire, in both eras."""

import base64
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import AudioContent, BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent

from squidbot.servers.filesystem.sandbox import Sandbox
from squidbot.servers.filesystem.server import build_server

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F-04")]

COMMAND = [sys.executable, "-P", "-m", "squidbot.servers.filesystem"]
TOOLS = {
    "read_file",
    "write_file",
    "edit_file",
    "list_directory",
    "search_files",
    "move_file",
    "file_info",
    "create_directory",
    "delete_file",
}


@asynccontextmanager
async def over_stdio(folder: Path, era: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], str(folder)], env=dict(os.environ))
    async with Client(server, mode=era, read_timeout_seconds=30) as client:
        yield client


@asynccontextmanager
async def over_http(folder: Path, era: str) -> AsyncIterator[Client]:
    async with await anyio.open_process([*COMMAND, str(folder), "--http", "0"], stdout=None) as process:
        assert process.stderr
        with anyio.fail_after(30):
            announced = await process.stderr.receive()
        async with Client(announced.decode().split()[-1], mode=era, read_timeout_seconds=30) as client:
            yield client
        process.terminate()
        with anyio.fail_after(10):
            assert await process.wait() == 0


@asynccontextmanager
async def in_memory(folder: Path) -> AsyncIterator[Client]:
    sandbox = Sandbox.open(folder)
    try:
        async with Client(build_server(sandbox), mode="legacy") as client:
            yield client
    finally:
        sandbox.close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def done(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text(result)


@pytest.mark.parametrize("connect", [over_stdio, over_http])
@pytest.mark.parametrize(("era", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_day_with_files_goes_the_same_over_every_transport_in_both_eras(
    tmp_path: Path, connect: Any, era: str, revision: str
) -> None:
    """Whatever client comes, the server does the whole job."""
    async with connect(tmp_path, era) as client:
        assert client.protocol_version == revision
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        assert (await done(client, "create_directory", path="docs/old"))["created"]
        assert (await done(client, "write_file", path="docs/plan.md", content="one\ntwo\n"))["created"]
        edited = await done(client, "edit_file", path="docs/plan.md", old_text="two", new_text="three")
        assert "-two\n+three\n" in edited["diff"]
        assert (await done(client, "read_file", path="docs/plan.md"))["text"] == "one\nthree\n"
        await done(client, "move_file", source="docs/plan.md", destination="docs/old/plan.md")
        found = await done(client, "search_files", text="thr[e]+", regex=True)
        assert found["matches"] == [{"path": "docs/old/plan.md", "line": 2, "text": "three"}]
        assert (await done(client, "file_info", path="docs/old/plan.md"))["size"] == 10
        await done(client, "delete_file", path="docs/old/plan.md")
        listing = await done(client, "list_directory", depth=3)
        assert [entry["path"] for entry in listing["entries"]] == ["docs", "docs/old"]
        assert "leaves the folder" in await refused(client, "read_file", path="../secret")


async def test_every_tool_says_what_it_takes_and_gives_and_whether_it_changes_anything(tmp_path: Path) -> None:
    """Clients decide by these whether to ask a person first."""
    async with in_memory(tmp_path) as client:
        assert client.instructions
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    reading = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
    gentle = {name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint is False}
    assert reading == {"read_file", "list_directory", "search_files", "file_info"}
    assert gentle == {"create_directory"}
    for tool in tools.values():
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema
        assert tool.annotations
        assert tool.annotations.open_world_hint is False
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)


async def test_a_long_file_is_read_in_parts_with_the_way_on(tmp_path: Path) -> None:
    """A part that does not say so is taken for the whole."""
    (tmp_path / "long").write_text("".join(f"line {number}\n" for number in range(1, 6)))
    async with in_memory(tmp_path) as client:
        result = await client.call_tool("read_file", {"path": "long", "offset": 2, "limit": 2})
        assert text(result) == "line 2\nline 3\n\n[lines 2 to 3; go on with offset 4]"
        assert result.structured_content["next_offset"] == 4
        assert "has fewer than 9 lines" in await refused(client, "read_file", path="long", offset=9)


async def test_a_picture_a_sound_and_other_bytes_come_as_what_they_are(tmp_path: Path) -> None:
    """Models see pictures and hear sounds when these are sent as such."""
    data = b"\0\1\2\xff"
    async with in_memory(tmp_path) as client:
        for name in ("a.png", "a.wav", "a b.bin"):
            encoded = base64.b64encode(data).decode()
            await done(client, "write_file", path=name, content=encoded, encoding="base64")
            assert (tmp_path / name).read_bytes() == data
        results = {name: await client.call_tool("read_file", {"path": name}) for name in ("a.png", "a.wav", "a b.bin")}
    encoded = base64.b64encode(data).decode()
    assert results["a.png"].content == [ImageContent(data=encoded, mime_type="image/png")]
    assert results["a.wav"].content == [AudioContent(data=encoded, mime_type="audio/x-wav")]
    [block] = results["a b.bin"].content
    assert isinstance(block, EmbeddedResource)
    assert isinstance(block.resource, BlobResourceContents)
    assert (block.resource.blob, block.resource.uri) == (encoded, "workspace:///a%20b.bin")
    assert results["a b.bin"].structured_content["kind"] == "binary"


async def test_what_is_too_large_is_refused_with_the_bound(tmp_path: Path) -> None:
    """A bound that is not named is found by trying."""
    with (tmp_path / "big.bin").open("wb") as file:
        file.truncate(5_000_001)
    async with in_memory(tmp_path) as client:
        assert "a binary file may have 5000000" in await refused(client, "read_file", path="big.bin")
        large = "x" * 5_000_001
        assert "may have 5000000 bytes" in await refused(client, "write_file", path="new", content=large)
        assert "may have 5000000 bytes" in await refused(
            client, "edit_file", path="big.bin", old_text="a", new_text="b"
        )
    assert names(tmp_path) == ["big.bin"]


async def test_arguments_that_do_not_fit_are_all_named_at_once(tmp_path: Path) -> None:
    """One complaint a turn costs as many turns as there are mistakes."""
    async with in_memory(tmp_path) as client:
        words = await refused(client, "read_file", pth="a", limit=0, offset="many")
        assert "'path': Field required" in words
        assert "'limit': Input should be greater than or equal to 1" in words
        assert "'offset': Input should be a valid integer" in words
        assert "'pth': no such argument, did you mean 'path'?" in words
        assert "It takes path, offset, limit." in words
        assert "nothing to look for" in await refused(client, "search_files")
        assert "is no base64" in await refused(client, "write_file", path="a", content="?", encoding="base64")


async def test_an_unknown_tool_is_an_error_of_the_protocol(tmp_path: Path) -> None:
    """The specification has a code for it, and clients look for that."""
    async with in_memory(tmp_path) as client:
        with pytest.raises(MCPError, match="Unknown tool: nope") as caught:
            await client.call_tool("nope", {})
    assert caught.value.code == -32602


async def test_moving_never_replaces_by_accident(tmp_path: Path) -> None:
    """The file that is overwritten is the one that nobody kept."""
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    async with in_memory(tmp_path) as client:
        assert "'b' exists: use another" in await refused(client, "move_file", source="a", destination="b")
        assert (tmp_path / "b").read_text() == "b"
        assert (await done(client, "move_file", source="a", destination="b", overwrite=True))["replaced"]
        assert (tmp_path / "b").read_text() == "a"
        words = await refused(client, "move_file", source="b", destination="folder", overwrite=True)
        assert "use destination 'folder/b'" in words
        words = await refused(client, "move_file", source="folder", destination="c", overwrite=True)
        assert "a directory cannot replace it" in words
        words = await refused(client, "move_file", source="folder", destination="folder/inner")
        assert "cannot be moved into itself" in words
        assert "no file or directory 'x'" in await refused(client, "move_file", source="x", destination="y")
        await done(client, "move_file", source="folder", destination="other")
    assert names(tmp_path) == ["b", "c", "other"]


async def test_editing_what_is_no_text_is_refused_instead_of_damaging_it(tmp_path: Path) -> None:
    """Decoding and encoding again would change bytes that nobody asked to change."""
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    async with in_memory(tmp_path) as client:
        words = await refused(client, "edit_file", path="latin", old_text="caf", new_text="tea")
        assert "is no UTF-8 text, and editing would damage it" in words
        same = await client.call_tool("read_file", {"path": "latin"})
        assert "[bytes that are no UTF-8 are shown as \ufffd]" in text(same)
    assert (tmp_path / "latin").read_bytes() == b"caf\xe9"


async def test_edits_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """Each edit reads, changes and writes; two that overlap would undo each other."""
    words = [f"<{number}>" for number in range(20)]
    (tmp_path / "file").write_text("".join(words))
    async with in_memory(tmp_path) as client, anyio.create_task_group() as tasks:
        for word in words:
            arguments = {"path": "file", "old_text": word, "new_text": f"{word}!"}
            tasks.start_soon(client.call_tool, "edit_file", arguments)
    assert (tmp_path / "file").read_text() == "".join(f"{word}!" for word in words)


async def test_a_listing_and_a_search_say_when_there_is_more_or_nothing(tmp_path: Path) -> None:
    """Silence about the rest reads as completeness."""
    async with in_memory(tmp_path) as client:
        assert text(await client.call_tool("list_directory", {})) == "(empty)"
        for number in range(1_001):
            (tmp_path / f"{number:04}").touch()
        os.mkfifo(tmp_path / "0000-pipe")
        result = await client.call_tool("list_directory", {})
        assert result.structured_content["truncated"] is True
        assert "0000 (0 bytes)\n0000-pipe (other)" in text(result)
        assert "[only the first 1000" in text(result)
        result = await client.call_tool("search_files", {"glob": "*", "limit": 3})
        assert "[stopped at 3 matches: there may be more" in text(result)
        result = await client.call_tool("search_files", {"text": "none"})
        assert text(result) == "nothing found in 1002 files and directories"


async def test_a_failure_of_the_system_or_of_the_server_is_an_answer_without_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exceptions carry paths of the machine, which are nobody's business outside."""

    def failing(error: Exception) -> Any:
        def fail(_sandbox: Sandbox, _parts: object) -> object:
            raise error

        return fail

    async with in_memory(tmp_path) as client:
        monkeypatch.setattr(Sandbox, "entry", failing(OSError(5, "Input/output error", str(tmp_path))))
        assert await refused(client, "file_info", path="a") == "file_info: the system failed: Input/output error"
        monkeypatch.setattr(Sandbox, "entry", failing(RuntimeError(f"lost {tmp_path}")))
        words = await refused(client, "file_info", path="a")
    assert words == "file_info: something went wrong inside this server; its log says what"
    assert "RuntimeError: lost" in capsys.readouterr().err


async def test_what_is_gits_own_can_be_read_and_not_changed(tmp_path: Path) -> None:
    """A line in `.git/config` can name a program that the next git command runs."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]\n")
    async with in_memory(tmp_path) as client:
        assert (await done(client, "read_file", path=".git/config"))["text"] == "[core]\n"
        for tool, arguments in (
            ("write_file", {"path": ".git/hooks/pre-commit", "content": "x"}),
            ("write_file", {"path": "a/../.GIT/config", "content": "x"}),
            ("edit_file", {"path": ".git/config", "old_text": "core", "new_text": "x"}),
            ("move_file", {"source": ".git", "destination": "other"}),
            ("create_directory", {"path": "sub/.git"}),
            ("delete_file", {"path": ".git/config"}),
        ):
            assert "git's own" in await refused(client, tool, **arguments)
    assert (tmp_path / ".git" / "config").read_text() == "[core]\n"
