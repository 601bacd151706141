"""Events come out the same however the bytes were cut."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from squidbot.adapters.mcp.channel import ChannelClosed, Oversize
from squidbot.adapters.mcp.events import Event, Events

LINES = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data",
        b"data:  c",
        b"event: ping",
        b"id: 1",
        b"id: \x00",
        b"retry: 5",
        b"retry: x",
        b": comment",
        b"other: x",
        b"",
        b"",
        b"data: \xff\xe2\x82",
        b"data: " + b"x" * 60,
    ]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=30).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


def read(stream: bytes, limit: int = 50) -> list[Event | Oversize]:
    return Events(limit).feed(stream)


@example(stream=b"data: a\ndata: " + b"x" * 60 + b"\n\n", cuts=[52])
@given(STREAMS, st.lists(st.integers(0, 400), max_size=12))
def test_any_chunking_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    """A network cuts where it likes, also within a CRLF or a character."""
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    events = Events(50)
    found = [event for a, b in itertools.pairwise(places) for event in events.feed(stream[a:b])]
    assert found == read(stream)


def test_one_byte_at_a_time_gives_the_same_events() -> None:
    """The worst of all networks: every CRLF is cut in two."""
    stream = b"data: a\r\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n"
    events = Events(50)
    found = [event for byte in stream for event in events.feed(bytes([byte]))]
    assert found == read(stream) == [Event("message", data) for data in (b"a\nb", b"c", b"d")]


@given(st.text().filter(lambda text: "\r" not in text), st.integers(0, 10**8))
def test_what_is_encoded_is_read_back(text: str, retry: int) -> None:
    """The guard takes events apart and puts them together again."""
    event = Event("message", text.encode("utf-8", "replace"), "7", retry)
    assert read(event.encoded(), limit=10**6) == [event]


def test_fields_are_read_as_the_standard_has_them() -> None:
    """Byte order mark, comments, one blank after the colon, several lines of data."""
    stream = b"\xef\xbb\xbf: hello\nevent: endpoint\ndata: /a\n\ndata: 1\ndata:2\nid: 9\nretry: 30\n\n\n"
    assert read(stream) == [Event("endpoint", b"/a"), Event("message", b"1\n2", "9", 30)]


def test_an_event_that_is_too_large_leaves_its_two_ends_and_the_next_one_is_fine() -> None:
    """Its id may stand at either end, and the stream must outlive it."""
    body = json.dumps({"id": 5, "x": "y" * 100_000, "last": 1}).encode()
    events = Events(10_000)
    found: list[Any] = []
    stream = b"data: " + body + b"\ndata: more\n\ndata: ok\n\n"
    for start in range(0, len(stream), 999):
        found += events.feed(stream[start : start + 999])
    large, fine = found
    assert isinstance(large, Oversize)
    assert b'"id": 5' in large.head
    assert b'"last": 1' in large.tail
    assert len(large.head) <= 4096 >= len(large.tail)
    assert fine == Event("message", b"ok")


def test_comments_never_add_up() -> None:
    """A server may keep its line alive for days."""
    events = Events(20)
    assert [event for _ in range(1000) for event in events.feed(b": keepalive\n")] == []
    assert events.feed(b"data: x\n\n") == [Event("message", b"x")]


def test_an_event_without_end_is_given_up() -> None:
    """It would hold up every other answer for ever."""
    stream = (b"data: " + b"x" * 90 + b"\n") * 100
    with pytest.raises(ChannelClosed, match="without end"):
        read(stream, limit=100)
