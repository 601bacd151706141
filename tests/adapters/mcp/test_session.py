"""One conversation: lists to their end, questions answered on the way, the envelope of the era."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp.processes import messages, scripted
from tests.fixtures.meeting import meeting

pytestmark = pytest.mark.anyio

DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": -1,
    "cacheScope": "private",
    "resultType": "complete",
}
MODERN = {"server/discover": [{"result": DISCOVERED}]}
DONE = {"result": {"content": [{"type": "text", "text": "done"}], "resultType": "complete"}}
FORM = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": {}}},
}


def _tools(*names: str, cursor: Any = None) -> list[dict[str, Any]]:
    page: dict[str, Any] = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    return [{"result": page if cursor is None else {**page, "nextCursor": cursor}}]


# Pages


@pytest.mark.requirement("C-01")
async def test_lists_are_read_page_after_page_with_the_cursors_that_the_server_gave(tmp_path: Path) -> None:
    """A tool on the third page is as real as one on the first."""
    heard = tmp_path / "heard"
    pages = [_tools("a", "b", cursor="2"), _tools("c", cursor="3"), _tools("d")]
    async with meeting(scripted({"tools/list": pages}, heard)) as client:
        assert [tool.tool for tool in client.get_available_tools()] == ["a", "b", "c", "d"]
    asked = [message.get("params", {}).get("cursor") for message in messages(heard, "tools/list")]
    assert asked == [None, "2", "3"]


@pytest.mark.requirement("B-14", "C-01")
@pytest.mark.parametrize(
    ("pages", "bounds", "kept", "words"),
    [
        ([_tools("a", cursor="x"), _tools("b", cursor="x")], {}, ["a", "b"], "its pages repeat themselves"),
        (
            [_tools("a", cursor="1"), _tools("b", cursor="2"), _tools("c")],
            {"pages": 2},
            ["a", "b"],
            "more than 2 pages",
        ),
        ([_tools("a", "b", "c")], {"tools": 2}, ["a", "b"], "more than 2 items"),
        (
            [_tools("a", cursor="x"), [{"error": {"code": -1, "message": "lost my place"}}]],
            {},
            ["a"],
            "a page failed: lost my place",
        ),
        ([_tools("a", cursor=7)], {}, ["a"], None),
    ],
    ids=["repeating", "too many pages", "too many tools", "a page that fails", "a cursor that is none"],
)
async def test_a_list_without_a_proper_end_is_cut_short_and_what_was_read_is_kept(
    pages: list[Any], bounds: dict[str, int], kept: list[str], words: str | None, logged: list[str]
) -> None:
    """An endless list must cost neither the server nor our patience."""
    async with meeting(scripted({"tools/list": pages}, bounds=bounds)) as client:
        assert [tool.tool for tool in client.get_available_tools()] == kept
    assert (words is None) == (not logged)
    if words is not None:
        assert "tools/list was cut short" in logged[0]
        assert words in logged[0]


async def test_prompts_or_resources_that_cannot_be_listed_do_not_cost_the_tools(logged: list[str]) -> None:
    """Many servers promise more than they have."""
    initialized = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "x", "version": "1"},
    }
    script = {
        "initialize": [{"result": initialized}],
        "prompts/list": [{"error": {"code": -32603, "message": "out of paper"}}],
    }
    async with meeting(scripted(script)) as client:
        assert len(client.get_available_tools()) == 1
        assert client.get_prompts() == []
        assert client.get_resources() == []
    assert ["out of paper" in warning for warning in logged] == [True]


# Arguments


@pytest.mark.requirement("D-04")
@pytest.mark.parametrize("protocol", ["legacy", "modern"])
async def test_arguments_that_are_no_json_are_an_error_result_and_nothing_is_sent(
    tmp_path: Path, protocol: str
) -> None:
    """A program that hands over a set must hear of it, and not by an exception out of the wire."""
    heard = tmp_path / "heard"
    circle: dict[str, Any] = {}
    circle["me"] = circle
    async with meeting(scripted(MODERN, heard, protocol=protocol)) as client:
        for arguments in ({"x": {1, 2}}, {"x": b"bytes"}, circle):
            result = await client.call_tool("world", "act", arguments)
            assert result.is_error
            assert "cannot be written as JSON" in result.text
        assert (await client.call_tool("world", "act", {"x": float("nan")})).text == "done"
    (sent,) = messages(heard, "tools/call")
    assert sent["params"]["arguments"] == {"x": None}


# The stateless era


@pytest.mark.requirement("B-05", "A-08")
async def test_in_the_stateless_era_every_request_carries_who_we_are_and_what_we_can_do(tmp_path: Path) -> None:
    """There is no opening that could have told it."""
    heard = tmp_path / "heard"
    entry = scripted(
        MODERN, heard, protocol="modern", config={"team": "blue", "api_key": "s3cr3t-value"}, log_level="error"
    )
    async with meeting(entry, roots=[]) as client:
        await client.call_tool("world", "act", {"n": 1})
        assert client.status("world").protocol == "2026-07-28"
    sent = messages(heard)
    assert [message["method"] for message in sent] == ["server/discover", "tools/list", "tools/call"]
    for message in sent:
        meta = {key.rpartition("/")[2]: value for key, value in message["params"]["_meta"].items()}
        assert meta["protocolVersion"] == "2026-07-28"
        assert meta["clientInfo"]["name"] == "squidbot"
        assert meta["clientCapabilities"]["experimental"]["config"]["team"] == "blue"
        assert "s3cr3t-value" not in str(message)
    assert "'error'" in str(sent[2]["params"]["_meta"])


@pytest.mark.requirement("A-08")
async def test_in_the_handshake_era_the_opening_carries_the_configuration_without_its_secrets(tmp_path: Path) -> None:
    """A server is configured where it is used; a secret goes by the environment alone."""
    heard = tmp_path / "heard"
    async with meeting(scripted({}, heard, config={"team": "blue", "api_key": "s3cr3t-value"})):
        pass
    (opening,) = messages(heard, "initialize")
    assert opening["params"]["capabilities"]["experimental"]["config"]["team"] == "blue"
    assert "s3cr3t-value" not in heard.read_text("utf-8")


async def _person(server: str, form: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"action": "accept", "content": {"colour": "blue"}}


async def _clumsy(server: str, form: Mapping[str, Any]) -> Mapping[str, Any]:
    raise RuntimeError("the terminal at /dev/tty is gone")


def _asks(*turns: dict[str, Any]) -> dict[str, Any]:
    return {**MODERN, "tools/call": [[{"result": {"resultType": "input_required", **turn}}] for turn in turns]}


async def test_a_call_that_needs_input_comes_back_with_it_and_with_the_servers_own_state(tmp_path: Path) -> None:
    """The server keeps nothing between two rounds: what it gave us it must get back."""
    heard = tmp_path / "heard"
    script = _asks({"inputRequests": {"colour": FORM}, "requestState": "one"}, {"requestState": "two"})
    script["tools/call"].append([DONE])
    async with meeting(scripted(script, heard, protocol="modern"), elicitation=_person) as client:
        assert (await client.call_tool("world", "act", {"n": 1})).text == "done"
    first, second, third = (message["params"] for message in messages(heard, "tools/call"))
    assert "requestState" not in first
    assert second["requestState"] == "one"
    assert second["inputResponses"]["colour"] == {"action": "accept", "content": {"colour": "blue"}}
    assert third["requestState"] == "two"
    assert "inputResponses" not in third
    assert first["arguments"] == second["arguments"] == third["arguments"] == {"n": 1}


@pytest.mark.requirement("D-04")
@pytest.mark.parametrize(
    ("turn", "person", "words"),
    [
        ({"inputRequests": {"c": FORM}, "requestState": "on"}, _person, "more than 10 times"),
        ({"inputRequests": {"c": {"method": "format/disk"}}}, _person, "asked for input in no valid way"),
        ({}, _person, "asked for input in no valid way"),
        ({"inputRequests": {"c": FORM}}, None, "not supported"),
        ({"inputRequests": {"c": FORM}}, _clumsy, "the client could not answer"),
    ],
    ids=["for ever", "unknown question", "no question", "nobody to ask", "an answer that fails"],
)
async def test_a_call_whose_questions_lead_nowhere_is_an_error_result(turn: Any, person: Any, words: str) -> None:
    """Neither a server's nor a program's fault may raise into the agent or go on for ever."""
    async with meeting(scripted(_asks(turn), protocol="modern"), elicitation=person) as client:
        result = await client.call_tool("world", "act")
    assert result.is_error
    assert words in result.text
    assert "/dev/tty" not in result.text


# Logging

LOGGING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}, "logging": {}},
    "serverInfo": {"name": "x", "version": "1"},
}


@pytest.mark.requirement("G-06")
@pytest.mark.parametrize("answer", [{"result": {}}, {"error": {"code": -1, "message": "no levels here"}}])
async def test_a_server_is_told_the_level_of_the_settings_and_may_refuse(
    tmp_path: Path, answer: Any, logged: list[str]
) -> None:
    """A refused wish is a warning, not a lost server."""
    heard = tmp_path / "heard"
    script = {"initialize": [{"result": LOGGING}], "logging/setLevel": [answer]}
    async with meeting(scripted(script, heard, log_level="critical")) as client:
        assert (await client.call_tool("world", "act")).text == "done"
    (sent,) = messages(heard, "logging/setLevel")
    assert sent["params"] == {"level": "critical"}
    assert ("error" in answer) == any("no levels here" in warning for warning in logged)
