"""Every operation over every transport in both eras: what an agent gets must not depend on how bytes move."""

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
    MCPRequestRefused,
    TextContent,
    ToolResult,
)
from squidbot.adapters.schemas.checker import JSONSchemaCheck
from squidbot.core.domain.servers import ServerEvent, ServerLog
from tests.fixtures.meeting import REVISIONS, Place, at
from tests.fixtures.running import until
from tests.fixtures.world import PROMPTS, RESOURCES, TEMPLATES
from tests.fixtures.world_tools import LEVELS, TOOLS

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


@pytest.mark.requirement("C-04")
async def test_prompts_are_listed_and_filled_in(place: Place) -> None:
    """A server's prompts are of use only with their arguments, and a missing one must be named."""
    async with at(place) as client:
        prompts = {prompt.prompt: prompt for prompt in client.get_prompts("world")}
        assert set(prompts) == {"greet", "picture", "plain"}
        assert [(argument.name, argument.required) for argument in prompts["greet"].arguments] == [
            ("name", True),
            ("tone", False),
        ]
        rendered = await client.render_prompt("world", "greet", {"name": "Ada", "tone": "warm"})
        assert rendered.messages[0].role == "user"
        assert rendered.messages[0].content == TextContent("Hello Ada, said in a warm way.")
        picture = await client.render_prompt("world", "picture")
        assert picture.messages[0].content == ImageContent(b"\x89PNG", "image/png")
        with pytest.raises(MCPRequestRefused, match="'name' is missing"):
            await client.render_prompt("world", "greet")


@pytest.mark.requirement("C-08")
async def test_resources_are_listed_and_read(place: Place) -> None:
    """Text stays text and bytes stay bytes, and what a template stands for can be read."""
    async with at(place) as client:
        listed = {resource.uri: resource.is_template for resource in client.get_resources("world")}
        assert listed == {
            "world://note": False,
            "world://bytes": False,
            "world://third": False,
            "world://item/{id}": True,
        }
        (bytes_,) = await client.read_resource("world", "world://bytes")
        assert isinstance(bytes_, BinaryContent)
        assert bytes_.data == b"\x00\x01\x02\xff"
        (item,) = await client.read_resource("world", "world://item/7")
        assert isinstance(item, BinaryContent)
        assert item.text == "world://item/7 version 1"
        with pytest.raises(MCPRequestRefused, match="Unknown resource"):
            await client.read_resource("world", "world://nowhere")


@pytest.mark.requirement("C-08")
async def test_an_update_of_a_subscribed_resource_is_heard(place: Place) -> None:
    """Whoever subscribed must not read a stale text for ever."""
    uri = f"world://item/{_token()}"
    events: list[ServerEvent] = []
    async with at(place, on_event=events.append) as client:
        await client.subscribe_resource("world", uri)

        async def heard() -> bool:
            # Touched again and again: a subscription of the stateless era begins a moment after it was asked for.
            await client.call_tool("world", "touch", {"uri": uri})
            return any(event.kind == "resource_updated" and event.params.get("uri") == uri for event in events)

        await until(heard, what="the update of the resource")
        (content,) = await client.read_resource("world", uri)
        assert isinstance(content, BinaryContent)
        assert content.text != f"{uri} version 1"


async def test_completions_come_from_the_server(place: Place) -> None:
    """A person at the terminal is offered what the server knows."""
    reference = {"type": "ref/prompt", "name": "greet"}
    async with at(place) as client:
        found = await client.complete("world", {"ref": reference, "argument": {"name": "name", "value": "a"}})
        assert list(found["values"]) == ["Ada", "Alan"]


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


@pytest.mark.requirement("G-06")
async def test_log_messages_of_every_level_are_heard(place: Place) -> None:
    """What a server has to say about a failure is often the only clue."""
    heard: list[ServerLog] = []
    async with at(place, {"log_level": "debug"}, on_log=heard.append) as client:
        await client.call_tool("world", "log")
        await until(lambda: len(heard) >= len(LEVELS), what="a message at each level")
    assert [entry.level for entry in heard] == list(LEVELS)
    assert {(entry.server, entry.logger) for entry in heard} == {("world", "world")}
    assert heard[0].data == "a message at debug"


@pytest.mark.requirement("G-06")
async def test_log_messages_below_the_level_of_the_settings_are_not_sent(place: Place) -> None:
    """A chatty server is told to be quiet, not only unheard."""
    heard: list[ServerLog] = []
    async with at(place, {"log_level": "error"}, on_log=heard.append) as client:
        await client.call_tool("world", "log")
        await until(lambda: any(entry.level == "emergency" for entry in heard), what="the last message")
    assert [entry.level for entry in heard] == ["error", "critical", "alert", "emergency"]


async def _ask(place: Place, tool: str, **answers: Any) -> ToolResult:
    async with at(place, **answers) as client:
        return await client.call_tool("world", tool)


async def test_a_server_can_ask_the_person_the_model_and_for_the_roots(place: Place) -> None:
    """The two eras ask in opposite ways; whoever answers must not have to know."""

    async def person(server: str, form: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"action": "accept", "content": {"colour": f"{server} blue"}}

    async def model(server: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "scripted"}

    assert (await _ask(place, "ask", elicitation=person)).text == "accept: {'colour': 'world blue'}"
    assert (await _ask(place, "think", sampling=model)).text == "the model says 42"
    assert (await _ask(place, "roots", roots=["file:///workspace"])).text == "file:///workspace"


async def test_a_server_that_asks_and_is_not_answered_gets_no_further(place: Place) -> None:
    """What nobody offered is declined with a reason: the call ends, and nothing hangs."""
    for tool in ("ask", "think", "roots"):
        with anyio.fail_after(10):
            assert (await _ask(place, tool)).is_error


@pytest.mark.requirement("A-08")
async def test_the_configuration_reaches_the_server_as_a_capability_without_its_secrets(place: Place) -> None:
    """A server is configured where it is used, and a secret goes by the environment alone."""
    config = {"workspace": "blue", "api_key": "s3cr3t-value"}
    async with at(place, {"config": config}) as client:
        seen = (await client.call_tool("world", "surroundings")).structured
    assert seen["capabilities"]["experimental"]["config"]["workspace"] == "blue"
    assert "s3cr3t-value" not in str(seen["capabilities"])
    if place.transport == "stdio":
        assert "s3cr3t-value" in seen["config"]
