"""A form from a tool's parameters, and the arguments that come back from it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.errors import InvalidArguments
from squidbot.core.domain.tools import Parameter
from squidbot.gateway.dashboard.fields import arguments_of, fields_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(min_size=1), JSON)
def test_whatever_is_written_arrives(text: str, value: Any) -> None:
    """What is tried must be what was typed."""
    parameters = [Parameter("words", "string"), Parameter("any", "array | object")]
    sent = {"arg.words": text, "arg.any": json.dumps(value)}
    assert arguments_of(parameters, sent) == {"words": text, "any": value}


def test_each_kind_of_parameter_has_its_field() -> None:
    """Nobody should have to know JSON to give a number."""
    parameters = [
        Parameter("title", "string", "What it is.", required=True),
        Parameter("body", "string | null"),
        Parameter("count", "integer", default=20),
        Parameter("sure", "boolean"),
        Parameter("mode", "string", enum=("fast", "slow", 3)),
        Parameter("labels", "array"),
    ]
    fields = fields_of(parameters, {"arg.count": "7"})
    assert [field.kind for field in fields] == ["text", "text", "number", "choice", "choice", "json"]
    assert [field.rows for field in fields] == [1, 4, 1, 1, 1, 4]
    assert fields[0].hint == "string. What it is"
    assert (fields[2].value, fields[2].hint) == ("7", "integer. Default 20")
    assert fields[3].options == ("true", "false")
    assert fields[4].options == ("fast", "slow", "3")
    sent = {"arg.title": "", "arg.count": "7", "arg.sure": "false", "arg.mode": "3", "arg.labels": '["a"]'}
    assert arguments_of(parameters, sent) == {"title": "", "count": 7, "sure": False, "mode": 3, "labels": ["a"]}


def test_all_that_cannot_be_read_is_named_at_once() -> None:
    """One round of corrections, not one for each field."""
    parameters = [Parameter("n", "integer"), Parameter("o", "object"), Parameter("e", "string", enum=("a",))]
    with pytest.raises(InvalidArguments) as caught:
        arguments_of(parameters, {"arg.n": "NaN", "arg.o": "{", "arg.e": "b"})
    assert [problem.path for problem in caught.value.problems] == ["n", "o", "e"]
    with pytest.raises(InvalidArguments):
        arguments_of(parameters, {"arg.n": "1e999"})
