"""What a record keeps, and what an answer is allowed to tell."""

import json

import pytest

from squidbot.core.domain.content import BinaryContent, TextContent
from squidbot.core.domain.recorded import LIMIT, stored, stored_name, without_secrets
from squidbot.core.domain.redaction import Redactor
from squidbot.core.domain.tools import ToolResult

SECRET = "s3cr3t-value-of-the-settings-0123456789"


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize("before", range(LIMIT - 2_100, LIMIT - 2_000, 7))
def test_a_secret_at_the_place_of_a_cut_is_taken_out_whole(before: int) -> None:
    """Half a secret is a good beginning for whoever wants the other half."""
    text = "x" * before + SECRET + "y" * 5 * LIMIT
    kept = stored({"text": text}, Redactor([SECRET]))
    assert SECRET[:8] not in kept
    at_the_end = "x" * 5 * LIMIT + SECRET + "y" * (LIMIT - 1_000 - before % 90)
    assert SECRET[-8:] not in stored({"text": at_the_end}, Redactor([SECRET]))
    assert json.loads(kept)["text"]["size"] == len(text)


@pytest.mark.requirement("E-05")
@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("git_push", "git_push"),
        (" git_push ", " git_push "),
        ("git_push\n", r"git_push\n"),
        ("git\r\n_push\t", r"git\r\n_push\t"),
        ("git\u200b_push", r"git\u200b_push"),
        ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted:"),
        ("https://me:hunter22@host/x?token=abcdefgh", "https://[redacted:"),
        (f"mcp_{SECRET}", "mcp_[redacted:"),
    ],
)
def test_a_name_is_kept_as_it_was_given_but_for_secrets(name: str, kept: str) -> None:
    """`git_push ` was refused because it is not `git_push`; and whoever mistakes a field pastes a token anywhere."""
    recorded = stored_name(name, Redactor([SECRET]))
    assert recorded.startswith(kept)
    assert kept.startswith(recorded) or "[redacted:" in kept
    assert len(recorded.splitlines()) == 1
    assert not any(secret in recorded for secret in (SECRET, "ABCDEFGHIJ", "hunter22", "abcdefgh"))


def test_a_name_is_not_kept_without_end() -> None:
    """A caller may ask for a tool with a megabyte of a name."""
    assert len(stored_name("x" * 1_000_000, Redactor())) < 300


@pytest.mark.requirement("E-05")
def test_an_answer_tells_no_secret_of_the_settings_wherever_it_stands() -> None:
    """In a text, under a key, as a key, in a file, in an address."""
    block = BinaryContent(f"file:///{SECRET}", "embedded", name=SECRET, data=b"\xff" + SECRET.encode())
    raw = {"content": [{"type": "text", "text": SECRET}], "structuredContent": {SECRET: {SECRET: [SECRET]}}}
    result = ToolResult((TextContent(f"it is {SECRET}"), block), structured=raw["structuredContent"], raw=raw)
    given = without_secrets(result, Redactor([SECRET]))
    assert SECRET not in repr((given, given.raw))
    assert repr((given, given.raw)).count("[redacted:") == 11


def test_no_more_of_an_answer_is_looked_through_than_a_record_can_keep() -> None:
    """Ten megabytes of what looks like passwords would hold everybody up, and are cut away all the same."""
    looked_at: list[int] = []

    class Counting(Redactor):
        def text(self, text: str) -> str:
            looked_at.append(len(text))
            return super().text(text)

    part = '{"token": "abc"}' * 1_000
    kept = stored({"content": [{"text": part} for _ in range(600)]}, Counting([SECRET]))
    assert sum(looked_at) < 40 * LIMIT
    assert '"cut":true' in kept
