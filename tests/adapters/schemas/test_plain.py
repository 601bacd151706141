"""Schemas that cannot do harm, told from all others."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.adapters.schemas.plain import MOST_WORK, is_light, width
from squidbot.adapters.schemas.validation import all_problems, compile_schema

names = st.sampled_from(["a", "b", "c", "pattern", "$ref"])
limits: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["string", "integer", ["object", "null"], "array", "nonsense", [], ["null", "null"]]),
    "enum": st.lists(st.none() | st.integers(0, 3) | st.text(max_size=2) | st.just([1]), max_size=3),
    "const": st.integers(0, 2) | st.just({}),
    "required": st.lists(names | st.just(1), max_size=3),
    "minimum": st.integers(-1, 1) | st.booleans(),
    "multipleOf": st.integers(0, 2),
    "maxLength": st.integers(-1, 2) | st.just(1.5),
    "title": st.text(max_size=2) | st.none(),
    "default": st.none() | st.integers(),
    "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b", "#", "#/$defs/nowhere", "other.json", 3]),
    "pattern": st.sampled_from(["^a", "("]),
    "$schema": st.sampled_from(["https://json-schema.org/draft/2020-12/schema", "http://example.org", 1]),
}
leaves = st.fixed_dictionaries({}, optional=limits)


def _with_parts(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(parts, max_size=3)
    named = st.dictionaries(names, parts, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            **{name: limits[name] for name in ("type", "required", "$ref")},
            **dict.fromkeys(("properties", "$defs"), named),
            **dict.fromkeys(("allOf", "anyOf", "prefixItems"), several),
            **dict.fromkeys(("items", "additionalProperties"), parts),
        },
    )


schemas = st.recursive(st.booleans() | leaves, _with_parts, max_leaves=8).filter(
    lambda schema: isinstance(schema, dict)
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"pattern": {"type": "string"}, "$ref": {"enum": ["a", None]}}},
        {"type": ["array", "null"], "items": {"type": "number", "minimum": 0, "multipleOf": 0.5}, "maxItems": 9},
        {"$schema": "http://json-schema.org/draft-07/schema#", "additionalProperties": False, "x-own": {"pattern": 1}},
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "A", "description": "B"},
        {"$defs": {"A": {"prefixItems": [True, {"const": 1}]}}, "properties": {"a": {"$ref": "#/$defs/A"}}},
    ],
)
def test_what_tools_usually_say_is_plain(schema: dict[str, Any]) -> None:
    """These are most of all checks, and they must cost next to nothing."""
    assert width(schema) is not None


@pytest.mark.requirement("D-05")
@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^(a+)+$"},
        {"properties": {"properties": {"pattern": "^(a+)+$"}}},
        {"patternProperties": {"^(a+)+$": {}}},
        {"dependentSchemas": {"properties": {"pattern": "^(a+)+$"}}},
        {"type": [{"pattern": "^(a+)+$"}]},
        {"uniqueItems": True},
        {"unevaluatedProperties": False},
        {"not": {}},
        {"oneOf": [{}]},
        {"if": {}},
        {"contains": {}},
        {"const": [1]},
        {"enum": [[1]]},
        {"$dynamicRef": "#a"},
        {"$ref": "#"},
        {"$ref": "http://127.0.0.1/schema.json"},
        {"$id": "other.json"},
        {"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"},
        {"$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}, "$ref": "#/$defs/A"},
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        {"maximum": True},
        {"properties": []},
        {"items": [{}]},
        {"anyOf": []},
        {"something": "new"},
        {3: 4},
        {"$defs": {"A": 3}},
    ],
)
def test_what_can_freeze_or_is_not_understood_is_not_plain(schema: dict[Any, Any]) -> None:
    """What is not known to be harmless is taken to be harmful."""
    assert width(schema) is None


@pytest.mark.requirement("D-05")
def test_a_schema_without_end_is_seen_through_at_once() -> None:
    """Looking at a schema must not be the trap that checking with it would have been."""
    doubling: dict[str, Any] = {"a0": {}}
    for level in range(1, 30):
        doubling[f"a{level}"] = {"anyOf": [{"$ref": f"#/$defs/a{level - 1}"}] * 2}
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"items": deep}
    began = time.perf_counter()
    assert width({"$defs": doubling, "$ref": "#/$defs/a29"}) is None
    assert width(deep) is None
    assert width({"properties": {str(number): {} for number in range(100_000)}}) is None
    assert width({"enum": list(range(100_000))}) is None
    assert time.perf_counter() - began < 1
    while deep:  # a nest this deep would bring down whoever took it apart at one go
        deep = deep["items"]


def test_width_counts_what_meets_in_one_place() -> None:
    """The bound on the work of a check is this number times the weight of the value."""
    assert width({"properties": {"a": {}, "b": {}}}) == 1
    assert width({"anyOf": [{}, {}, {}]}) == 4
    assert width({"items": {"anyOf": [{}, {}]}, "allOf": [{"items": {"anyOf": [{}, {}]}}]}) == 6
    assert width({"$defs": {"A": {"anyOf": [{}, {}]}}, "$ref": "#/$defs/A"}) == 5
    assert width({"properties": {str(number): {} for number in range(32)}, "additionalProperties": False}) == 35


@pytest.mark.parametrize(
    ("value", "weight"),
    [
        (None, 1),
        ([1, "a", {"b": None}], 5),
        ("x" * 640, 11),
        ({"x" * 640: 1}, 12),
        (2**5120, 11),
        ({3: 4}, 2),
        ([[]] * 50, 51),
    ],
)
def test_a_value_weighs_its_parts_and_its_length(value: Any, weight: int) -> None:
    """Long text costs time where it is shown, and many parts where they are looked at."""
    assert is_light(value, weight)
    assert not is_light(value, weight - 1)


@settings(max_examples=150)
@given(schemas, json_values)
def test_what_is_plain_is_well_formed_and_says_the_same_unchecked(schema: dict[str, Any], value: Any) -> None:
    """Plain schemas are not held against their own schema any more, which takes longer than all their checks."""
    if width(schema) is None:
        return
    careful, quick = compile_schema(schema), compile_schema(schema, well_formed=True)
    assert careful is not None
    assert quick is not None
    assert all_problems(careful, value) == all_problems(quick, value)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {f"name{n}": {} for n in range(40)}, "additionalProperties": False}, {"nbme": 1}),
        ({"items": {"enum": [f"v{n}" for n in range(300)]}}, ["q"]),
        ({"items": {"anyOf": [{"type": "string", "maxLength": 1}] * 60}}, ["ab" * 30]),
        ({"items": {"required": [f"r{n}" for n in range(200)]}}, [{}]),
    ],
)
def test_the_worst_that_is_called_plain_and_light_is_soon_done(schema: dict[str, Any], value: Any) -> None:
    """It runs in the event loop, where a quarter of a second is the end of every promise."""
    found = width(schema)
    assert found is not None
    many = value
    while is_light(
        larger := [*many, *value] if isinstance(many, list) else {**many, f"nbme{len(many)}": 1}, MOST_WORK // found
    ):
        many = larger
    validator = compile_schema(schema)
    assert validator is not None
    began = time.process_time()
    assert all_problems(validator, many)
    assert time.process_time() - began < 0.25
