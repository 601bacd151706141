"""Every operation on tools over every transport in both eras: what an agent gets must not depend on how bytes move."""

import uuid
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from squidbot import (
    AudioContent,
    BinaryContent,
    ImageContent,
    MCPClient,
    TextContent,
)
from squidbot.adapters.schemas.checker import JSONSchemaCheck
from tests.fixtures.meeting import REVISIONS, Place, at
from tests.fixtures.running import until
from tests.fixtures.world import PROMPTS, RESOURCES, TEMPLATES
from tests.fixtures.world_tools import TOOLS

pytestmark = pytest.mark.anyio


def _names(client: MCPClient) -> set[str]:
    return {tool.tool for tool in client.get_available_tools("world")}


async def _witness(client: MCPClient, what: str, token: str) -> bool:
    """Whether the server saw `token` of a call of `slow` as started, finished or cancelled."""
    seen = (await client.call_tool("world", "witness")).structured
    return token in seen[what]


def _token() -> str:
    return uuid.uuid4().hex


@pytest.mark.requirement("B-01", "B-02", "B-03", "B-04", "B-05", "C-01")
async def test_all_tools_are_listed_with_their_schemas_in_the_era_that_was_asked_for(place: Place) -> None:
    """An agent can only use what it is told of, and the era decides everything that follows."""
    async with at(place) as client:
        assert _names(client) == set(TOOLS)
        listed = {tool.tool: tool for tool in client.get_available_tools("world")}
        assert listed["add"].parameters == TOOLS["add"].definition.input_schema
        assert listed["add"].output_schema == TOOLS["add"].definition.output_schema
        assert listed["add"].name == "mcp_world_add"
        status = client.status("world")
        assert (status.state, status.protocol, status.tools) == ("ready", REVISIONS[place.era], len(TOOLS))
        assert status.instructions == "One of everything."


@pytest.mark.requirement("C-01")
async def test_lists_that_come_in_pages_are_read_to_their_end(paged_place: Place) -> None:
    """A tool on the second page is as real as one on the first."""
    async with at(paged_place) as client:
        assert _names(client) == set(TOOLS)
        assert {prompt.prompt for prompt in client.get_prompts("world")} == {prompt.name for prompt in PROMPTS}
        assert len(client.get_resources("world")) == len(RESOURCES) + len(TEMPLATES)


@pytest.mark.requirement("D-01")
@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("echo", {"text": "héllo\n\u2028 \x00 😀"}, "héllo\n\u2028 \x00 😀"),
        ("introduce", {"self": "squid", "name": "a mollusc"}, "squid is a mollusc"),
    ],
    ids=["any text", "parameters called self and name"],
)
async def test_a_call_brings_back_what_the_tool_said(
    place: Place, tool: str, arguments: Mapping[str, Any], answer: str
) -> None:
    """Arguments and answers travel unchanged, whatever they are called and whatever is in them."""
    async with at(place) as client:
        result = await client.call_tool("world", tool, arguments)
        assert (result.text, result.is_error) == (answer, False)


@pytest.mark.requirement("B-09")
async def test_fifty_calls_run_side_by_side_and_each_gets_its_own_answer(place: Place) -> None:
    """One slow call must not hold up its neighbours, nor an answer reach the wrong caller."""
    answers: dict[int, str] = {}

    async def one(client: MCPClient, number: int) -> None:
        # Each takes a third of a second: one after the other they would take seventeen.
        await client.call_tool("world", "slow", {"seconds": 0.3, "token": _token()})
        answers[number] = (await client.call_tool("world", "echo", {"text": f"call {number}"})).text

    async with at(place) as client:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for number in range(50):
                    tasks.start_soon(one, client, number)
    assert answers == {number: f"call {number}" for number in range(50)}


@pytest.mark.requirement("D-04")
async def test_an_error_result_keeps_the_words_of_the_tool(place: Place) -> None:
    """The model corrects itself only if it reads what the tool said."""
    async with at(place) as client:
        result = await client.call_tool("world", "fail")
        assert (result.text, result.is_error) == ("the disk is full", True)


@pytest.mark.requirement("D-04")
async def test_an_exception_in_the_server_is_an_error_result_and_the_server_stays(place: Place) -> None:
    """A tool never raises into the agent, and one bad call ends nothing but itself."""
    async with at(place) as client:
        result = await client.call_tool("world", "boom")
        assert result.is_error
        assert result.failure is not None
        assert "world" in result.text, "whose fault it was"
        assert (await client.call_tool("world", "echo", {"text": "still here"})).text == "still here"


@pytest.mark.requirement("B-10")
async def test_a_call_that_takes_too_long_ends_by_its_deadline_and_the_server_is_told(place: Place) -> None:
    """Nobody waits for ever, and the server does not work on for nobody."""
    token = _token()
    async with at(place) as client:
        with anyio.fail_after(5):
            result = await client.call_tool("world", "slow", {"seconds": 50, "token": token}, timeout=0.5)
        assert result.is_error
        assert result.failure is not None
        assert result.failure.kind == "timeout"
        assert all(part in result.text for part in ("world", "slow", "0.5"))
        await until(lambda: _witness(client, "cancelled", token), what="the server to hear of the cancellation")


@pytest.mark.requirement("B-10")
async def test_a_caller_that_gives_up_is_heard_by_the_server(place: Place) -> None:
    """Cancelling an agent must stop the work that it asked for."""
    token = _token()
    async with at(place) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "world", "slow", {"seconds": 50, "token": token})
            await until(lambda: _witness(client, "started", token), what="the call to reach the server")
            tasks.cancel_scope.cancel()
        await until(lambda: _witness(client, "cancelled", token), what="the server to hear of the cancellation")


async def test_progress_reaches_whoever_asked_for_it_in_order(place: Place) -> None:
    """A person who waits wants to see how far it is."""
    heard: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with at(place) as client:
        result = await client.call_tool("world", "progress", {"steps": 3}, on_progress=on_progress)
        assert result.text == "3 steps"
        await until(lambda: len(heard) == 3, what="three reports of progress")
    assert heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@pytest.mark.requirement("C-05")
async def test_tools_that_come_and_go_are_noticed(place: Place) -> None:
    """A list of tools that is out of date promises what is not there."""
    async with at(place) as client:
        await client.call_tool("world", "toggle")
        await until(lambda: "extra" in _names(client), what="the new tool")
        assert (await client.call_tool("world", "extra")).text == "extra"
        await client.call_tool("world", "toggle")
        await until(lambda: "extra" not in _names(client), what="the tool to be gone")
        gone = await client.call_tool("world", "extra")
        assert gone.failure is not None
        assert gone.failure.kind == "unknown_tool"


@pytest.mark.requirement("D-01")
async def test_every_kind_of_content_arrives_decoded_and_in_order(place: Place) -> None:
    """An agent that gets a picture as text, or the blocks out of order, misreads the answer."""
    async with at(place) as client:
        result = await client.call_tool("world", "kinds")
    assert result.content == (
        TextContent("words"),
        ImageContent(b"\x89PNG", "image/png"),
        AudioContent(b"RIFF", "audio/wav"),
        BinaryContent(uri="world://note", kind="embedded", mime_type="text/plain", text="a note"),
        BinaryContent(
            uri="world://bytes", kind="embedded", mime_type="application/octet-stream", data=b"\x00\x01\x02\xff"
        ),
        BinaryContent(uri="world://third", kind="link", name="third", mime_type="text/plain"),
    )


@pytest.mark.requirement("D-01", "D-05")
async def test_structured_content_is_kept_and_held_against_its_schema(place: Place) -> None:
    """A program relies on the shape that the tool promised; people still read the text of one that broke it."""
    async with at(place, schemas=JSONSchemaCheck()) as client:
        good = await client.call_tool("world", "add", {"a": 2, "b": 3.5})
        assert (good.structured, good.text, good.is_error) == ({"sum": 5.5}, "5.5", False)
        bad = await client.call_tool("world", "liar")
        assert bad.is_error
        assert "the text is fine" in bad.text
