"""What is written down once says the same as what is written anew."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.gateway.mcp.lists import Listed
from squidbot.gateway.mcp.wire import Written, encoded

pytestmark = pytest.mark.requirement("G-01")

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), TREES, max_size=4)


@given(value=OBJECTS, more=OBJECTS, name=st.integers() | st.text())
def test_an_object_that_is_written_already_reads_like_any_other(value: Any, more: Any, name: Any) -> None:
    """Numbers that JSON has not, halves of characters and empty objects among them."""
    more = {f"more {key}": part for key, part in more.items()}
    plain = {"jsonrpc": "2.0", "id": name, "result": {**value, **more}}
    written = {**plain, "result": Written(value).extended(more)}
    assert json.loads(encoded(written)) == json.loads(encoded(plain))


def test_pages_are_written_once_and_are_the_whole_list() -> None:
    listed = Listed([{"name": f"tool {number}"} for number in range(7)], b"")
    found: list[Any] = []
    start: str | None = "0"
    while start is not None:
        page = listed.page("tools", int(start), 3)
        assert page is listed.page("tools", int(start), 3)
        assert json.loads(page.text) == page
        found += page["tools"]
        start = page.get("nextCursor")
    assert found == listed.items
    for odd in range(1_000):
        assert listed.page("tools", odd, 1)["tools"] == listed.items[odd : odd + 1]
    assert len(listed.pages) < 100
