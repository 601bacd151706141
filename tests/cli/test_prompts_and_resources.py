"""`squidbot prompts` and `squidbot resources`, against a real server."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Squidbot, write_settings
from tests.fixtures.running import plain_entry


@pytest.mark.requirement("C-04", "G-03")
def test_prompts_are_listed(world: Path, squidbot: Squidbot) -> None:
    """Which there are, and what they want to know."""
    (greet, *_) = squidbot("prompts", "list", "--json").json
    assert greet == {
        "name": "mcp_world_greet",
        "server": "world",
        "prompt": "greet",
        "description": "A greeting",
        "arguments": [
            {"name": "name", "description": "Whom", "required": True},
            {"name": "tone", "description": "How", "required": False},
        ],
    }
    assert re.search(r"^mcp_world_greet +name \[tone\] +A greeting", squidbot("prompts", "list").out, re.MULTILINE)
    assert len(squidbot("prompts", "list", "--server", "world", "--json").json) == 3


@pytest.mark.requirement("C-04", "G-03")
def test_a_prompt_is_rendered(world: Path, squidbot: Squidbot) -> None:
    """Arguments of prompts are text, whatever they look like."""
    assert squidbot("prompts", "render", "greet", "name=3").out == "user:\nHello 3, said in a friendly way.\n"
    document = squidbot("prompts", "render", "mcp_world_greet", "--args", '{"name": "Ada"}', "--json").json
    assert (document["server"], document["prompt"], document["description"]) == ("world", "greet", "The prompt greet")
    assert document["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Hello Ada, said in a friendly way."}}
    ]
    assert re.search(r"\[image, image/png, 4 bytes: .+\.png\]", squidbot("prompts", "render", "picture").out)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["greed", "name=x"], "unknown_prompt", "unknown prompt 'greed'"),
        (["greet", "nam=x"], "invalid_arguments", "name: is needed. Whom\n  nam: is no argument of it. Did you mean"),
        (["greet", "word"], "invalid_arguments", "'word' is no argument"),
    ],
)
def test_a_prompt_that_cannot_be_rendered_is_exit_code_two(
    arguments: list[str], code: str, words: str, world: Path, squidbot: Squidbot
) -> None:
    """Found before the server is asked, all of it at once."""
    ran = squidbot("prompts", "render", *arguments, "--json")
    assert (ran.code, ran.error["code"]) == (2, code)
    assert words in ran.error["message"]


@pytest.mark.requirement("C-08", "G-03")
def test_resources_are_listed_with_their_families(world: Path, squidbot: Squidbot) -> None:
    """A template is no address by itself, so it is marked."""
    listed = squidbot("resources", "list", "--json").json
    assert listed[0] == {
        "server": "world",
        "uri": "world://note",
        "name": "note",
        "description": "A text",
        "mime_type": "text/plain",
        "size": None,
        "template": False,
    }
    assert [item["uri"] for item in listed if item["template"]] == ["world://item/{id}"]
    assert "world://note" in squidbot("resources", "list").out


@pytest.mark.requirement("C-08", "G-03")
def test_a_resource_is_read_by_its_address(world: Path, squidbot: Squidbot) -> None:
    """One that is listed, one of a family, one that is bytes."""
    assert squidbot("resources", "read", "world://note").out == "world://note version 1\n"
    assert squidbot("resources", "read", "world://item/7").out == "world://item/7 version 1\n"
    document = squidbot("resources", "read", "world://bytes", "--server", "world", "--json").json
    assert (document["server"], document["uri"]) == ("world", "world://bytes")
    assert document["content"][0]["data"] == "AAEC/w=="
    assert re.search(r"4 bytes: .+\.bin\]", squidbot("resources", "read", "world://bytes").out)


def test_an_unknown_address_is_exit_code_two(world: Path, squidbot: Squidbot) -> None:
    """With what was perhaps meant."""
    ran = squidbot("resources", "read", "world://not", "--json")
    assert (ran.code, ran.error["code"]) == (2, "unknown_resource")
    assert "world://note" in ran.error["hint"]


def test_an_address_that_only_the_server_can_judge_is_as_unknown(world: Path, squidbot: Squidbot) -> None:
    """One of a family, or of a server that was named, is asked for; its no is the same answer."""
    ran = squidbot("resources", "read", "world://nothing", "--server", "world", "--json")
    assert (ran.code, ran.error["code"]) == (2, "unknown_resource")
    assert "world://nothing" in ran.error["message"]


def test_an_address_of_two_servers_needs_the_server(folder: Path, world: Path, squidbot: Squidbot) -> None:
    """Two servers may well name their notes alike."""
    import json

    entry = json.loads(world.read_text())["tools"]["mcp_servers"]["world"]
    write_settings(folder, {"a": entry, "b": entry})
    ran = squidbot("resources", "read", "world://note", "--json")
    assert ran.code == 2
    assert ran.error["hint"] == "Say which with --server: a, b."
    assert squidbot("resources", "read", "world://note", "--server", "b").code == 0


@pytest.mark.parametrize("kind", ["prompts", "resources"])
def test_servers_that_offer_none_are_no_error(kind: str, folder: Path, squidbot: Squidbot) -> None:
    """An empty list is an answer."""
    write_settings(folder, {"plain": plain_entry()})
    assert squidbot(kind, "list", "--json").json == []
    ran = squidbot(kind, "list")
    assert (ran.code, ran.out) == (0, "")
    assert "No server offers" in ran.err
