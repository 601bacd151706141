"""Foreign text on a terminal or in a log."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.text import blanked, head_and_tail, paired, visible

any_text = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("a\rb", "a\\x0db"),
        ("file\u202etxt.exe", "file\\u202etxt.exe"),
        ("pass\u200bword", "pass\\u200bword"),
        ("hi\U000e0041\U000e0042", "hi\\U000e0041\\U000e0042"),
        ("x\ufe0f\ufe01\ufe02", "x\ufe0f\\ufe01\\ufe02"),
        ("\ufe0f", "\\ufe0f"),
        ("line\u2028line", "line\\u2028line"),
        ("half \ud800 pair", "half \\ud800 pair"),
        ("\u2764\u200d\ufe0f", "\u2764\\u200d\ufe0f"),
    ],
)
def test_what_nobody_would_see_is_written_out(foreign: str, shown: str) -> None:
    """A server must not be able to clear the screen, fake a line or hide words from the person."""
    assert visible(foreign) == shown


@pytest.mark.parametrize(
    "text", ["Grüße, 世界", "👩‍💻 ok", "❤️", "❤️‍🔥", "🏳️‍🌈", "a\tb\nc", "葛\U000e0100", 'C:\\x1b "quoted"']
)
def test_honest_text_is_left_alone(text: str) -> None:
    """People write in many scripts, and emoji are joined by a zero-width character."""
    assert visible(text) == text


def test_windows_line_ends_are_line_ends() -> None:
    """A carriage return is dangerous alone and ordinary before a newline."""
    assert visible("a\r\nb") == "a\nb"


@given(any_text)
def test_nothing_visible_controls_a_terminal(text: str) -> None:
    """Whatever the text, no control character but tab and newline is left, and it can be encoded."""
    shown = visible(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
    shown.encode("utf-8")


@given(any_text)
def test_visible_text_stays_as_it_is(text: str) -> None:
    """Text passes several rims; the second one must not change what the first one made."""
    assert visible(visible(text)) == visible(text)


@given(any_text)
def test_flattened_text_is_one_line(text: str) -> None:
    """One event is one line of the log, whatever a server puts into it."""
    assert len(visible(text, newlines=False).splitlines()) <= 1


@pytest.mark.requirement("D-03")
def test_a_long_text_keeps_its_two_ends_and_says_what_is_missing() -> None:
    """The beginning and the end say most; silence about the rest would mislead."""
    text = "\n".join(f"line {number}" for number in range(10_000))
    cut = head_and_tail(text, 1_000)
    assert cut.startswith("line 0\nline 1\n")
    assert cut.endswith("line 9998\nline 9999")
    assert "characters" in cut
    assert len(cut) < 1_200


def test_one_long_line_is_cut_too() -> None:
    """Minified output has no line ends to cut at."""
    cut = head_and_tail("x" * 5_000, 1_000)
    assert cut.startswith("x" * 500 + "\n[... 4,000 characters, 0 line ends left out ...]\n")


@given(any_text, st.integers(min_value=2, max_value=50))
def test_cutting_loses_nothing_that_it_does_not_count(text: str, limit: int) -> None:
    """The note's number is what a person decides by."""
    cut = head_and_tail(text, limit)
    if len(text) <= limit:
        assert cut == text
    else:
        head, _, rest = cut.partition("\n[... ")
        assert text.startswith(head) or "\n[... " in text
        assert rest


def test_secrets_are_blanked_the_longest_first() -> None:
    """A secret that contains another one must not leave its remainder behind."""
    assert blanked("token abcd1234 and abcd", {"abcd", "abcd1234"}) == "token [hidden] and [hidden]"


@given(any_text)
def test_whatever_is_paired_can_be_sent(text: str) -> None:
    """JSON escapes reach half characters in, and no HTTP library lets them out."""
    assert paired(text).encode().decode() == paired(text)
    if text.isprintable():
        assert paired(text) == text


def test_two_halves_are_one_character() -> None:
    """A stream may be cut between them."""
    assert paired("\ud83d" + "\ude00 \udcff") == "\U0001f600 \ufffd"
