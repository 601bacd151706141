"""Bytes to messages and back: whatever a server writes is a message, noise or unreadable, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from squidbot.adapters.mcp.channel import Bounds, ChannelClosed, Frame, Oversize
from squidbot.adapters.mcp.frames import Noise, Unreadable, possible_ids, read_frame, write_frame
from squidbot.adapters.mcp.lines import Lines

BOUNDS = Bounds()

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)
any_text = st.text(st.characters())
"""Lone surrogates included, which JSON can spell and UTF-8 cannot."""
loose_values = st.recursive(
    scalars | any_text | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=20,
)


def _read(frame: bytes) -> dict[str, Any] | Noise | Unreadable:
    try:
        return read_frame(frame, BOUNDS)
    except (Noise, Unreadable) as outcome:
        return outcome


@settings(deadline=None)
@given(st.dictionaries(st.text(), json_values, max_size=4), st.sampled_from([b"", b"\r", b"  \t", b"\n"]))
def test_a_valid_message_is_read_as_any_json_parser_reads_it(parts: dict[str, Any], around: bytes) -> None:
    """Between a server and an agent nothing may be lost or changed."""
    message = {**parts, "jsonrpc": "2.0"}
    assert _read(around + json.dumps(message).encode() + around) == message
    assert _read(json.dumps(message, ensure_ascii=False).encode()) == message


@settings(deadline=None)
@given(st.binary() | st.binary().map(lambda tail: b'{"jsonrpc":"2.0","id":1,' + tail))
@example(b'{"jsonrpc":"2.0","a":{"\\ud800":1,"\\ud801":2}}')
@example(b'{"jsonrpc":"2.0","n":' + b"9" * 5000 + b"}")
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"\xef\xbb\xbf{")
@example(b"\xff\xfe{\x00")
def test_any_bytes_are_a_message_or_noise_or_unreadable(frame: bytes) -> None:
    """One odd line must never end a connection."""
    outcome = _read(frame)
    assert isinstance(outcome, dict | Noise | Unreadable)


@settings(deadline=None)
@given(st.dictionaries(any_text, loose_values, max_size=5))
def test_whatever_is_written_is_one_line_of_valid_json_in_utf_8(message: dict[str, Any]) -> None:
    """A peer that reads line by line must find exactly one message, whatever strings an agent came up with."""
    frame = write_frame(message)
    assert b"\n" not in frame
    json.loads(frame.decode("utf-8"), parse_constant=pytest.fail)


@settings(deadline=None)
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_what_json_can_carry_comes_back_as_it_was_written(message: dict[str, Any]) -> None:
    """Arguments reach the tool unchanged."""
    assert json.loads(write_frame(message)) == message


def test_what_json_cannot_carry_is_replaced_and_not_refused() -> None:
    """A stray NaN in one argument must not cost the call."""
    written = json.loads(write_frame({"a": [float("nan"), 1.5], "b": (float("-inf"),), "c": "\ud800!"}))
    assert written == {"a": [None, 1.5], "b": [None], "c": "\ufffd!"}


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b'\xef\xbb\xbf {"jsonrpc":"2.0","id":1}\r', {"jsonrpc": "2.0", "id": 1}),
        (b'{"jsonrpc":"2.0","t":"\xff"}', {"jsonrpc": "2.0", "t": "\ufffd"}),
        (b'{"jsonrpc":"2.0","n":NaN,"i":-Infinity}', {"jsonrpc": "2.0", "n": None, "i": None}),
        (b'{"jsonrpc":"2.0","t":"\\ud800 \\ud83d\\ude00"}', {"jsonrpc": "2.0", "t": "\ufffd \U0001f600"}),
    ],
    ids=["byte order mark and CR", "broken UTF-8", "NaN", "lone surrogate"],
)
def test_small_sins_are_forgiven(frame: bytes, message: dict[str, Any]) -> None:
    """Servers are written by people; what can be understood is understood."""
    assert _read(frame) == message


@pytest.mark.parametrize("line", [b"", b"Server started on port 80", b'"id": 7', b"\xff\xfe", b"warning: {"])
def test_what_does_not_begin_like_a_message_is_noise(line: bytes) -> None:
    """A banner answers nobody's call."""
    assert isinstance(_read(line), Noise)


@pytest.mark.requirement("B-14")
@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b'[{"jsonrpc":"2.0","id":7,"result":{}}]', "a batch"),
        (b'{"id":7,"result":{}}', "jsonrpc 2.0"),
        (b'{"jsonrpc":"2.0","id":7,"result":{}', "no valid JSON"),
        (b'{"jsonrpc":"2.0","id":7,"result":{},"result":{"a":1}}', "a key stands twice"),
        (b'{"jsonrpc":"2.0","id":7,"result":{"\\ud800":1,"\\ud801":1}}', "a key stands twice"),
        (b'{"jsonrpc":"2.0","id":7,"result":' + b"[" * 201 + b"]" * 201 + b"}", "nested more than 200 deep"),
        (b'{"jsonrpc":"2.0","id":7,"result":[' + b"{}," * 100_001 + b"{}]}", "too many blocks"),
    ],
    ids=["batch", "no version", "cut off", "repeated key", "keys that become one", "too deep", "too many"],
)
def test_what_is_meant_for_us_and_cannot_be_used_names_the_reason_and_its_call(frame: bytes, reason: str) -> None:
    """The call that waits for this answer must fail at once, and say why."""
    outcome = _read(frame)
    assert isinstance(outcome, Unreadable)
    assert reason in outcome.reason
    assert outcome.ids == (7,)


def test_brackets_inside_of_strings_are_not_counted() -> None:
    """Source code in an answer is full of them."""
    text = '\\"[[{{' * 400
    message = {"jsonrpc": "2.0", "result": {"a": text, "b": '"' + "[" * 500, "[" * 300: [text]}}
    assert _read(json.dumps(message).encode()) == message


def test_deep_nesting_that_the_settings_allow_but_the_parser_does_not_is_unreadable() -> None:
    """A generous bound must not become a crash."""
    frame = b'{"jsonrpc":"2.0","id":7,"result":' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    with pytest.raises(Unreadable, match="nested too deeply"):
        read_frame(frame, Bounds(depth=1_000_000))


def test_ids_are_found_at_both_ends_of_what_cannot_be_read() -> None:
    """A huge answer may have its id first or last."""
    filler = b"x" * 200_000
    assert possible_ids(b'{"id": "abc", ' + filler + b', "id":-12}') == ("abc", -12)
    assert possible_ids(b'{"id": 1}', b'"id": 1, "id":2') == (1, 2)


def test_an_encoding_of_the_settings_is_heeded() -> None:
    """Some old servers still speak Latin-1."""
    frame = '{"jsonrpc":"2.0","t":"é"}'.encode("latin-1")
    assert read_frame(frame, BOUNDS, encoding="latin-1")["t"] == "é"


# Lines


def _cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=8),
    st.lists(st.integers(min_value=0, max_value=200), max_size=12),
    st.integers(min_value=2, max_value=20),
)
def test_any_chunking_gives_the_same_lines(lines: list[bytes], cuts: list[int], limit: int) -> None:
    """How the system cuts a stream into reads must never show."""
    data = b"".join(line + b"\n" for line in lines)
    splitter = Lines(limit)
    frames = [frame for chunk in _cut(data, cuts) for frame in splitter.feed(chunk)]
    expected: list[Frame] = [
        line if len(line) <= limit else Oversize(line[:4096], line[-4096:], limit) for line in lines if line
    ]
    assert frames == expected


@pytest.mark.requirement("B-14")
def test_a_line_over_the_limit_leaves_only_its_two_ends_and_the_next_is_whole() -> None:
    """One huge answer costs its own call, not the memory, and not the calls after it."""
    splitter = Lines(10_000)
    frames: list[Frame] = []
    for chunk in (b"HEAD", b"x" * 60_000, b"y" * 60_000, b"TAIL\n", b"next\n"):
        frames += splitter.feed(chunk)
    big, after = frames
    assert isinstance(big, Oversize)
    assert (big.head[:4], big.tail[-4:], len(big.head), len(big.tail)) == (b"HEAD", b"TAIL", 4096, 4096)
    assert after == b"next"


@pytest.mark.requirement("B-14")
def test_a_line_without_end_ends_the_connection() -> None:
    """A server that never ends its line will never answer again."""
    splitter = Lines(1_000)
    for _ in range(20):
        assert splitter.feed(b"x" * 1_000) == []
    with pytest.raises(ChannelClosed, match="a line without end"):
        splitter.feed(b"x")


@pytest.mark.requirement("B-14")
@pytest.mark.parametrize("number", ["9" * 1_001, "0." + "1" * 1_000, "-" + "1" * 1_000 + "e1"])
def test_a_number_that_nobody_can_use_is_refused_before_it_is_read(number: str) -> None:
    """Reading a whole number takes time by the square of its digits: two thousand of them would hold up everybody."""
    outcome = _read(f'{{"jsonrpc": "2.0", "id": 7, "result": {{"n": {number}}}}}'.encode())
    assert isinstance(outcome, Unreadable)
    assert outcome.ids == (7,)
    assert "a number of" in outcome.reason
