"""Everything beside tools over every transport in both eras: prompts, resources, logs, and what a server asks of us."""

import uuid
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from squidbot import BinaryContent, ImageContent, MCPRequestRefused, TextContent
from squidbot.core.domain.servers import ServerEvent, ServerLog
from tests.fixtures.meeting import Place, at
from tests.fixtures.running import until
from tests.fixtures.world_tools import LEVELS

pytestmark = pytest.mark.anyio


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
    uri = f"world://item/{uuid.uuid4().hex}"
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


async def test_a_server_can_ask_the_person_the_model_and_for_the_roots(place: Place) -> None:
    """The two eras ask in opposite ways; whoever answers must not have to know."""

    async def person(server: str, form: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"action": "accept", "content": {"colour": f"{server} blue"}}

    async def model(server: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "scripted"}

    async with at(place, elicitation=person, sampling=model, roots=["file:///workspace"]) as client:
        assert (await client.call_tool("world", "ask")).text == "accept: {'colour': 'world blue'}"
        assert (await client.call_tool("world", "think")).text == "the model says 42"
        assert (await client.call_tool("world", "roots")).text == "file:///workspace"


async def test_a_server_that_asks_and_is_not_answered_gets_no_further(place: Place) -> None:
    """What nobody offered is declined with a reason: the call ends, and nothing hangs."""
    async with at(place) as client:
        for tool in ("ask", "think", "roots"):
            with anyio.fail_after(10):
                assert (await client.call_tool("world", tool)).is_error


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
