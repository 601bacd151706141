"""Schemas for models and for simple agents."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squidbot.core.domain.schemas import flat_parameters, safe_schema
from squidbot.core.domain.tools import Parameter

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
keywords = st.sampled_from(["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "properties", "description"])
references = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/$defs/a/anyOf/0", "#/properties/p", "other.json"])
parts = st.recursive(
    json_values | st.builds(lambda reference: {"$ref": reference}, references),
    lambda inner: st.dictionaries(keywords, inner | st.lists(inner, max_size=3), max_size=4),
    max_leaves=12,
)


def only(schema: dict[str, Any], **definitions: Any) -> Parameter:
    [parameter] = flat_parameters({"properties": {"p": schema}, "$defs": definitions})
    return parameter


@pytest.mark.requirement("C-06")
def test_a_schema_becomes_a_list_of_parameters_in_the_order_of_the_server() -> None:
    """Frameworks without JSON Schema still need to know what a tool takes."""
    schema = {
        "properties": {
            "path": {"type": "string", "description": "Which file."},
            "mode": {"enum": ["r", "w"], "default": "r"},
            "self": {"type": ["integer", "null"]},
        },
        "required": ["path"],
    }
    assert flat_parameters(schema) == (
        Parameter("path", "string", "Which file.", required=True),
        Parameter("mode", "string", default="r", enum=("r", "w")),
        Parameter("self", "integer | null"),
    )


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "integer"}, "integer"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": []}, "any"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"oneOf": [{"type": "string"}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}]}, "string | integer"),
        ({"anyOf": []}, "any"),
        ({"anyOf": [{}, {"type": "null"}]}, "any | null"),
        ({"const": 3}, "integer"),
        ({"enum": ["a", 1, 1.5, True, None, [], {}]}, "string | integer | number | boolean | null | array | object"),
        ({"enum": []}, "any"),
        ({"properties": {}}, "object"),
        ({}, "any"),
        (True, "any"),
        ({"$ref": "#/$defs/name"}, "string"),
        ({"$ref": "#/$defs/a~1b%20c"}, "boolean"),
        ({"$ref": "#/$defs/either/anyOf/1"}, "null"),
        ({"$ref": "#/$defs/either/anyOf/7"}, "any"),
        ({"$ref": "#/$defs/nothing"}, "any"),
        ({"$ref": "#/$defs/name/type/deeper"}, "any"),
        ({"$ref": "other.json"}, "any"),
        ({"$ref": 3}, "any"),
        ({"allOf": [{"$ref": "#/$defs/name"}]}, "string"),
    ],
)
def test_a_type_is_named_however_the_schema_says_it(part: Any, kind: str) -> None:
    """Servers write the same type in a dozen ways, and a model should see one."""
    definitions = {
        "name": {"type": "string"},
        "a/b c": {"type": "boolean"},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    assert only(part, **definitions).type == kind


@pytest.mark.requirement("C-06")
def test_what_stands_beside_a_reference_wins_over_what_it_refers_to() -> None:
    """The description of this parameter says more than that of its type."""
    definition = {"type": "string", "description": "A color.", "enum": ["red"], "default": "red"}
    for part in ({"$ref": "#/$defs/c"}, {"allOf": [{"$ref": "#/$defs/c"}]}):
        found = only({**part, "description": "Of the roof."}, c=definition)
        assert found == Parameter("p", "string", "Of the roof.", default="red", enum=("red",))


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize("union", ["anyOf", "oneOf"])
def test_alternatives_that_lead_back_to_themselves_cost_nothing(union: str) -> None:
    """Two branches each time make a hostile schema grow beyond any patience."""
    start = time.monotonic()
    part = {"$ref": "#/$defs/a"}
    assert only(part, a={union: [part, part, {"type": "string"}]}).type in {"string", "any"}
    assert only(part, a=part).type == "any"
    assert time.monotonic() - start < 1


@pytest.mark.requirement("C-06")
@given(st.dictionaries(keywords | st.just("required") | st.just("$defs"), parts, max_size=5), parts, parts)
def test_any_schema_whatever_gives_a_list(schema: dict[str, Any], a: Any, b: Any) -> None:
    """Schemas come from strangers; a strange one must not take the tool list down."""
    for parameter in flat_parameters({**schema, "$defs": {"a": a, "b": b}}):
        assert parameter.name in schema["properties"]
        assert parameter.type


@given(st.dictionaries(keywords, json_values))
def test_a_safe_schema_is_an_object_and_otherwise_as_it_came(schema: dict[str, Any]) -> None:
    """Providers refuse a tool whose parameters are no object with properties; nothing else may change."""
    before = dict(schema)
    safe = safe_schema(schema)
    assert safe["type"] == "object"
    assert isinstance(safe["properties"], dict)
    assert schema == before
    if isinstance(schema.get("properties"), dict):
        assert safe["properties"] == schema["properties"]
    rest = {"type", "properties"}
    assert {k: v for k, v in safe.items() if k not in rest} == {k: v for k, v in schema.items() if k not in rest}
