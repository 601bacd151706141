"""Blocks become content one by one: the good ones are kept whatever stands beside them."""

import base64
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.adapters.mcp.content import content_of, rendered_prompt, resource_contents, tool_result
from squidbot.core.domain.content import AudioContent, BinaryContent, Content, ImageContent, TextContent
from squidbot.core.domain.prompts import PromptMessage

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
near_blocks = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "image", "audio", "resource", "resource_link"]) | json_values,
        "text": json_values,
        "data": json_values | st.just("AAEC"),
        "mimeType": json_values,
        "uri": json_values,
        "name": json_values,
        "resource": json_values
        | st.fixed_dictionaries({"uri": st.text()}, optional={"text": scalars, "blob": scalars}),
    },
)


def _note(block: Any) -> str:
    content = content_of(block)
    assert isinstance(content, TextContent)
    assert content.text.startswith("[left out: ")
    return content.text


@pytest.mark.requirement("D-02")
@settings(deadline=None)
@given(json_values | near_blocks)
def test_any_block_at_all_becomes_content(block: Any) -> None:
    """No answer of a server may end in an exception in the agent."""
    assert isinstance(content_of(block), get_args(Content))


@pytest.mark.requirement("D-02")
def test_our_own_words_on_a_block_have_nothing_unseen_in_them() -> None:
    """A note is ours, and what it quotes is not."""
    for block in ({"type": "\u202ex\x9b31m"}, {"type": "text", "text": ["\u200b"]}, ["\u202e"]):
        note = _note(block)
        assert [character for character in "\u202e\u200b\x9b" if character in note] == []


@pytest.mark.requirement("D-02")
@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(["content", "contents", "messages", "isError", "structuredContent"]), json_values)
)
def test_any_result_at_all_becomes_a_result(raw: dict[str, Any]) -> None:
    """The same for whole answers, of all three kinds."""
    assert isinstance(tool_result(raw, blocks=100).content, tuple)
    assert isinstance(resource_contents(raw), tuple)
    assert isinstance(rendered_prompt(raw).messages, tuple)


@pytest.mark.requirement("D-01")
@settings(deadline=None)
@given(st.binary(), st.text(min_size=1))
def test_bytes_and_their_kind_survive_the_way(data: bytes, mime_type: str) -> None:
    """A picture that arrives as something else is no picture."""
    encoded = {"data": base64.b64encode(data).decode(), "mimeType": mime_type}
    assert content_of({"type": "image", **encoded}) == ImageContent(data, mime_type)
    assert content_of({"type": "audio", **encoded}) == AudioContent(data, mime_type)


@pytest.mark.requirement("D-01")
def test_resources_are_embedded_or_linked() -> None:
    """A link must not look like the thing that it leads to."""
    link = {"type": "resource_link", "uri": "a://b", "name": "b", "mimeType": "text/plain"}
    assert content_of(link) == BinaryContent("a://b", "link", name="b", mime_type="text/plain")
    text = {"type": "resource", "resource": {"uri": "a://b", "text": "words"}}
    assert content_of(text) == BinaryContent("a://b", "embedded", text="words")
    blob = {"type": "resource", "resource": {"uri": "a://b", "blob": "AAEC", "mimeType": "x/y"}}
    assert content_of(blob) == BinaryContent("a://b", "embedded", mime_type="x/y", data=b"\x00\x01\x02")


@pytest.mark.requirement("D-01")
def test_order_and_structured_content_are_kept_and_the_whole_is_at_hand() -> None:
    """What the gateway sends on is what the server said."""
    raw = {
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
        "structuredContent": {"n": 1},
        "_meta": {"x": "y"},
    }
    result = tool_result(raw, blocks=10)
    assert (result.text, result.structured, result.raw, result.is_error) == ("one\ntwo", {"n": 1}, raw, False)


@pytest.mark.requirement("D-02")
def test_a_bad_block_between_good_ones_becomes_a_note_and_the_good_ones_stay() -> None:
    """Half an answer is better than none, if it says that it is half."""
    blocks = [
        {"type": "text", "text": "before"},
        {"type": "hologram", "data": "?"},
        {"type": "image", "data": "no base64!", "mimeType": "image/png"},
        {"type": "text", "text": "after"},
    ]
    content = tool_result({"content": blocks}, blocks=10).content
    assert content[0] == TextContent("before")
    assert content[3] == TextContent("after")
    assert "unknown kind 'hologram'" in _note(blocks[1])
    assert "an image block whose data is no base64" in _note(blocks[2])


@pytest.mark.requirement("D-02")
@pytest.mark.parametrize(
    ("block", "what"),
    [
        ("words", "no object"),
        ({"type": "text"}, "without text"),
        ({"type": "audio"}, "an audio block"),
        ({"type": "resource"}, "without a uri"),
        ({"type": "resource", "resource": {"uri": 3}}, "without a uri"),
        ({"type": "resource", "resource": {"uri": "a://b", "blob": "?"}}, "'a://b', whose data is no base64"),
        ({"type": "resource_link"}, "a link without a uri"),
        ({}, "unknown kind 'None'"),
    ],
)
def test_a_note_says_what_was_wrong(block: Any, what: str) -> None:
    """Whoever reads it must be able to tell the server's author."""
    assert what in _note(block)


def test_a_note_is_short_however_long_the_block() -> None:
    """A note on a megabyte must not be a megabyte."""
    assert len(_note({"type": "x", "data": "y" * 1_000_000})) < 400


@pytest.mark.requirement("D-02")
def test_empty_and_malformed_results_are_results() -> None:
    """A tool may have nothing to say."""
    assert tool_result({}, blocks=10).content == ()
    assert tool_result({"content": []}, blocks=10).text == ""
    assert "no list" in tool_result({"content": "words"}, blocks=10).text
    assert "without contents" in str(resource_contents({}))


@pytest.mark.requirement("D-04")
def test_only_a_true_error_flag_makes_an_error() -> None:
    """The server says whether its tool failed, and says it in one way."""
    failed = tool_result({"content": [{"type": "text", "text": "disk full"}], "isError": True}, blocks=10)
    assert failed.is_error
    assert failed.failure is not None
    assert (failed.failure.kind, failed.text) == ("tool", "disk full")
    assert not tool_result({"isError": "no"}, blocks=10).is_error


@pytest.mark.requirement("B-14")
def test_too_many_blocks_are_an_error_that_says_so() -> None:
    """Three hundred thousand blocks would block everybody else."""
    result = tool_result({"content": [{"type": "text", "text": "x"}] * 11}, blocks=10)
    assert result.is_error
    assert result.failure is not None
    assert result.failure.kind == "protocol"
    assert "11 blocks, too many (limit 10)" in result.text


@pytest.mark.requirement("C-04")
def test_a_rendered_prompt_keeps_its_messages_in_order_and_drops_what_is_none() -> None:
    """A conversation out of order is another conversation."""
    messages = [{"role": "user", "content": {"type": "text", "text": "Hi"}}, 7, {"role": "assistant"}]
    rendered = rendered_prompt({"description": "A talk", "messages": messages})
    assert rendered.description == "A talk"
    assert rendered.messages[0] == PromptMessage("user", TextContent("Hi"))
    assert [message.role for message in rendered.messages] == ["user", "assistant"]
    assert rendered_prompt({"messages": "none"}).messages == ()
