"""How refusals and odd answers look on the wire."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError

from squidbot.core.domain.content import TextContent
from squidbot.core.domain.errors import (
    InvalidArguments,
    MCPConnectionError,
    MCPRequestRefused,
    NotRecorded,
    Problem,
    RateLimited,
    SquidbotError,
    ToolNotPermitted,
    UnknownTool,
)
from squidbot.core.domain.tools import ToolResult
from squidbot.gateway.mcp.refusals import refused
from squidbot.gateway.mcp.results import call_result
from squidbot.gateway.mcp.seal import Seal
from squidbot.gateway.mcp.wire import Malformed, decoded, encoded

pytestmark = pytest.mark.requirement("G-01")
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("error", "words", "meta"),
    [
        (InvalidArguments("they do not fit:", [Problem("n", "is no number")]), "n: is no number", None),
        (RateLimited("too many calls", retry_after=2.5), "too many calls", {"retry_after": 2.5}),
        (NotRecorded("the disk of /var/lib is full"), "not recorded, not done", None),
        (
            MCPConnectionError("command /opt/x: gone", server="git", reason="it exited"),
            "'git' is not available: it exited",
            None,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_refused_call_is_an_error_result_without_our_insides(error: SquidbotError, words: str, meta: Any) -> None:
    """The table of the outer surface: the model reads it, and can do something about it."""
    wire = refused(error, "tool", "push")
    assert wire["isError"] is True
    assert words in wire["content"][0]["text"]
    assert wire.get("_meta") == meta
    assert "/var" not in str(wire)
    assert "/opt" not in str(wire)


@pytest.mark.parametrize("error", [ToolNotPermitted("role 'x' may not"), UnknownTool("no such tool", nearest=["pull"])])
def test_what_may_not_be_used_looks_like_what_does_not_exist(error: SquidbotError) -> None:
    """Whoever may not use a tool need not learn that it exists."""
    with pytest.raises(MCPError) as raised:
        refused(error, "tool", "push")
    assert (raised.value.code, raised.value.message, raised.value.data) == (-32602, "Unknown tool: push", None)


def test_a_servers_own_refusal_of_a_prompt_arrives_as_it_was_said() -> None:
    """Code and data are for the client's program, not for us."""
    said = {"code": -32002, "message": "Not here", "data": {"uri": "a:b"}}
    with pytest.raises(MCPError) as raised:
        refused(MCPRequestRefused("server 'x' said no", error=said), "resource", "a:b")
    assert (raised.value.code, raised.value.message, raised.value.data) == (-32002, "Not here", {"uri": "a:b"})


@pytest.mark.parametrize("modern", [True, False])
def test_good_blocks_pass_whole_and_bad_ones_are_replaced(modern: bool) -> None:
    """One block that no client can read must not cost all the others, nor anything that a server added to the good ones."""
    good = {"type": "text", "text": "a", "annotations": {"priority": 1}, "_meta": {"x": 1}, "future": "field"}
    raw = {
        "content": [good, {"type": "hologram"}],
        "structuredContent": [1],
        "isError": False,
        "resultType": "complete",
        "_meta": {"their": "own"},
    }
    result = ToolResult((TextContent("a"), TextContent("[left out]")), structured=[1], raw=raw)
    wire = call_result(result, modern=modern)
    assert wire["content"] == [good, {"type": "text", "text": "[left out]"}]
    assert wire["_meta"] == {"their": "own"}
    assert wire.get("structuredContent") == ([1] if modern else None)
    assert wire.get("resultType") == ("complete" if modern else None)


@given(JSON)
def test_what_we_write_we_read_again(value: Any) -> None:
    """The strict reader refuses nothing that is plain JSON."""
    assert decoded(encoded(value)) == value


@given(st.binary(max_size=200))
def test_no_bytes_surprise_the_reader(body: bytes) -> None:
    """They are a message or they are malformed; there is nothing else."""
    with suppress(Malformed):
        decoded(body)


@given(st.text(max_size=300))
def test_no_text_opens_a_seal_that_we_did_not_close(text: str) -> None:
    """Whatever a client shows as its session."""
    assert Seal(b"k" * 32).open("session", text) is None


def test_a_seal_is_for_one_purpose_and_one_key() -> None:
    """A request's state is no session, whoever made it."""
    seal = Seal(b"k" * 32)
    closed = seal.close("session", {"a": 1})
    assert seal.open("session", closed) == {"a": 1}
    assert seal.open("state", closed) is None
    assert Seal(b"x" * 32).open("session", closed) is None


def test_what_json_cannot_say_is_replaced() -> None:
    """A server's infinity, or half a character, must not end the stream that it is on."""
    assert json.loads(encoded({"n": float("inf"), "t": "\ud800", "l": [float("nan")]})) == {
        "n": None,
        "t": "?",
        "l": [None],
    }
