"""Schemas for model providers: each gets what it can read, and no tool loses its meaning."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from squidbot.core.domain.providers import Provider, UnfitSchema, fit_schema

PROVIDERS: tuple[Provider, ...] = ("openai", "anthropic", "gemini")


@pytest.mark.requirement("C-09")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_empty_schema_becomes_an_object_with_properties(provider: Provider) -> None:
    """Every provider refuses a tool whose parameters are no object."""
    fitted = fit_schema({}, provider)
    assert fitted["type"] == "object"
    assert fitted["properties"] == {}


@pytest.mark.requirement("C-09")
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_union_at_the_top_becomes_words(provider: Provider) -> None:
    """Both refuse it there, and the model should still know of it."""
    schema = {
        "type": "object",
        "description": "Finds things.",
        "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    }
    fitted = fit_schema(schema, provider)
    assert "anyOf" not in fitted
    assert fitted["description"].startswith("Finds things. (Also required")
    assert '"required": ["id"]' in fitted["description"]
    assert "anyOf" in schema


@pytest.mark.requirement("C-09")
def test_gemini_gets_no_references_type_lists_or_unknown_keywords() -> None:
    """Its schema language has none of them."""
    fitted = fit_schema(
        {
            "type": "object",
            "properties": {
                "who": {"$ref": "#/$defs/person", "description": "whom to ask"},
                "count": {"type": ["integer", "null"], "exclusiveMinimum": 0},
                "mode": {"const": "fast"},
                "mixed": {"type": ["string", "integer"]},
                "level": {"enum": [1, 2]},
                "loop": {"$ref": "#/$defs/node"},
            },
            "$defs": {
                "person": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
                "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}},
            },
            "additionalProperties": False,
        },
        "gemini",
    )
    assert fitted["properties"]["who"]["properties"]["name"] == {"type": "string"}
    assert fitted["properties"]["who"]["description"] == "whom to ask"
    assert fitted["properties"]["count"]["type"] == "integer"
    assert fitted["properties"]["count"]["nullable"] is True
    assert "exclusiveMinimum" in fitted["properties"]["count"]["description"]
    assert fitted["properties"]["mode"]["enum"] == ["fast"]
    assert [choice["type"] for choice in fitted["properties"]["mixed"]["anyOf"]] == ["string", "integer"]
    assert "[1, 2]" in fitted["properties"]["level"]["description"]
    assert "$ref" not in str(fitted)
    assert "$defs" not in fitted


@pytest.mark.requirement("C-09")
def test_a_reference_to_another_document_is_dropped() -> None:
    """No provider follows it, and some refuse the tool for it."""
    fitted = fit_schema({"properties": {"a": {"$ref": "https://example.com/a.json", "title": "A"}}}, "openai")
    assert fitted["properties"]["a"] == {"title": "A"}


@pytest.mark.requirement("C-09")
def test_a_parameter_name_that_a_provider_refuses_names_the_parameter() -> None:
    """The tool is left out alone, and somebody must be able to see why."""
    with pytest.raises(UnfitSchema, match="'a b'"):
        fit_schema({"properties": {"a b": {}}}, "anthropic")
    assert "a b" in fit_schema({"properties": {"a b": {}}}, "openai")["properties"]


_LEAVES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{"type": "string"}, {"type": "integer"}, {"type": ["string", "null"]}, {"const": 1}, {"enum": ["a", 2]}, {}]
)
_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda choices: {"anyOf": choices}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda parts: {"type": "object", "properties": parts, "additionalProperties": False},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        ),
    ),
    max_leaves=6,
)
_VALUES = st.recursive(
    st.one_of(st.none(), st.integers(0, 2), st.sampled_from("ab")),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc"), inner, max_size=2)),
    max_leaves=6,
)


@pytest.mark.requirement("C-09")
@given(
    parts=st.dictionaries(st.sampled_from("abc"), _SCHEMAS, max_size=3),
    value=st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3),
    provider=st.sampled_from(["openai", "anthropic"]),
)
def test_what_the_schema_allows_the_fitted_one_allows(
    parts: dict[str, Any], value: dict[str, Any], provider: Provider
) -> None:
    """A model must never be kept from a call that the server would take."""
    schema = {"type": "object", "properties": parts}
    if Draft202012Validator(schema).is_valid(value):
        assert Draft202012Validator(fit_schema(schema, provider)).is_valid(value)
