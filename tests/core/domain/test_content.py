"""Content as text."""

import pytest

from squidbot.core.domain.content import AudioContent, BinaryContent, Content, ImageContent, TextContent, text_of
from squidbot.core.domain.tools import Failure, ToolDefinition, ToolId, ToolResult


@pytest.mark.requirement("D-01")
@pytest.mark.parametrize(
    ("block", "words"),
    [
        (TextContent("hello"), "hello"),
        (ImageContent(b"123", "image/png"), "[image image/png, 3 bytes]"),
        (AudioContent(b"12", "audio/wav"), "[audio audio/wav, 2 bytes]"),
        (BinaryContent("file:///a", "embedded", text="inside"), "inside"),
        (BinaryContent("file:///a", "embedded", text=""), ""),
        (BinaryContent("file:///a", "link", name="A"), "[link A: file:///a]"),
        (BinaryContent("file:///a", "link"), "[link file:///a: file:///a]"),
        (
            BinaryContent("file:///a", "embedded", mime_type="application/pdf", data=b"1"),
            "[resource file:///a, application/pdf, 1 bytes]",
        ),
        (BinaryContent("file:///a", "embedded"), "[resource file:///a, unknown type, 0 bytes]"),
    ],
)
def test_every_kind_of_content_has_words(block: Content, words: str) -> None:
    """A model or a terminal that shows only text must still learn that there was something else."""
    assert text_of([block]) == words


@pytest.mark.requirement("D-01")
def test_the_text_of_a_result_is_all_of_its_blocks_in_order() -> None:
    """Order carries meaning: a caption stands before its picture."""
    result = ToolResult((TextContent("a"), ImageContent(b"", "image/png"), TextContent("b")))
    assert result.text == "a\n[image image/png, 0 bytes]\nb"
    assert ToolResult().text == ""


@pytest.mark.requirement("D-04")
def test_a_failure_of_our_own_is_a_result_with_words_and_with_a_cause_for_programs() -> None:
    """An agent reads the words, and the gateway the kind."""
    result = ToolResult.failed("too slow", "timeout", status=504, retry_after=1.5)
    assert (result.text, result.is_error) == ("too slow", True)
    assert result.failure == Failure("timeout", status=504, retry_after=1.5)


def test_a_tool_is_the_pair_of_its_server_and_its_name() -> None:
    """A joined string would make 'a/b' of two different pairs."""
    definition = ToolDefinition(server="s", tool="t", name="mcp_s_t")
    assert definition.id == ToolId("s", "t")
    assert str(definition.id) == "s/t"
