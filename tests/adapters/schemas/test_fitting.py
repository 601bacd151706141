"""A quick yes is never a wrong one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.adapters.schemas.checker import JSONSchemaCheck
from squidbot.adapters.schemas.fitting import quick_fit
from squidbot.adapters.schemas.plain import width
from squidbot.adapters.schemas.validation import all_problems, compile_schema

pytestmark = pytest.mark.anyio

names = st.sampled_from(["a", "b", "c"])
scalars = st.sampled_from(["string", "integer", "number", "boolean", "null"])
leaves: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"type": scalars}, optional={"description": st.text(max_size=3), "default": st.none()}),
    st.fixed_dictionaries({"type": st.lists(scalars, min_size=1, max_size=2, unique=True)}),
    st.fixed_dictionaries({"type": st.just("string"), "enum": st.lists(st.sampled_from("abc"), min_size=1)}),
    st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-1, 1)}),
    st.just({}),
)
schemas = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(names, parts, max_size=3)},
            optional={
                "required": st.lists(names, unique=True, max_size=2),
                "additionalProperties": st.booleans() | parts,
            },
        ),
        st.fixed_dictionaries({"type": st.just("array")}, optional={"items": parts}),
    ),
    max_leaves=6,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from("abcd"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=500)
@given(schemas, values)
def test_whatever_gets_a_quick_yes_has_no_problem_in_the_whole_check(schema: dict[str, Any], value: Any) -> None:
    """The short way may only ever say what the long one would have said."""
    fits = quick_fit(schema)
    validator = compile_schema(schema)
    assert validator is not None
    assert width(schema) is not None
    if fits is not None and fits(value):
        assert not all_problems(validator, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}, {"text": "hello"}),
        ({"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}, {"n": 3, "more": [1]}),
        ({"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}}, {"tags": ["a"]}),
        ({"type": "object", "properties": {"k": {"type": "string", "enum": ["a"]}}, "additionalProperties": False}, {}),
        ({"type": "object"}, {}),
    ],
)
def test_what_tools_usually_take_gets_one(schema: dict[str, Any], value: Any) -> None:
    """Otherwise there would be no use in it."""
    fits = quick_fit(schema)
    assert fits is not None
    assert fits(value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, True),
        ({"type": "integer"}, 1.0),
        ({"type": "object", "required": ["a"]}, {}),
        ({"type": "object", "additionalProperties": False}, {"a": 1}),
        ({"type": "array", "items": {"type": "integer"}}, [1] * 1_001),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": 1}),
    ],
)
def test_what_is_not_obvious_gets_none(schema: dict[str, Any], value: Any) -> None:
    """It is for the whole check to decide, which knows every keyword and says what is wrong."""
    fits = quick_fit(schema)
    assert fits is not None
    assert not fits(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 1},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a"}}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array", "items": {"type": "array"}},
        {"anyOf": [{"type": "string"}]},
        {"enum": [1]},
        {"type": ["object", "null"]},
        True,
    ],
)
def test_a_schema_that_says_more_than_is_understood_has_none(schema: Any) -> None:
    """A keyword that is passed over would let through what it forbids."""
    assert quick_fit(schema) is None


async def test_a_check_says_no_after_it_has_said_yes() -> None:
    """The quick yes must not stand in the way of the problems of the next value."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    async with JSONSchemaCheck() as check:
        assert await check.problems(schema, {"n": 1}) == ()
        assert [problem.path for problem in await check.problems(schema, {"n": "one"})] == ["n"]
        assert await check.problems(schema, {"n": 1.0}) == ()
