"""Values held against the schemas of strangers."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squidbot.adapters.schemas import checker
from squidbot.adapters.schemas.checker import JSONSchemaCheck

pytestmark = pytest.mark.anyio

CHECK = JSONSchemaCheck()
"""One for all: its workers belong to no event loop, and end with it."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
keywords = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "enum",
        "const",
        "$ref",
        "$schema",
        "$defs",
        "$id",
        "pattern",
        "patternProperties",
        "additionalProperties",
        "minimum",
        "multipleOf",
        "minLength",
    ]
)
schemas = st.recursive(
    json_values | st.sampled_from(["#", "#/$defs/a", "string", "object", "(", "http://127.0.0.1:9/x"]),
    lambda inner: st.dictionaries(keywords | st.text(max_size=2), inner | st.lists(inner, max_size=3), max_size=4),
    max_leaves=15,
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about what is said, also on a machine that has much else to do."""
    monkeypatch.setattr(checker, "BUDGET", 0.9)


@pytest.fixture(autouse=True, scope="module")
def no_leftovers() -> Iterator[None]:
    """Give the workers back at the end of this file."""
    yield
    CHECK._workers._idle.clear()


async def said(schema: Mapping[str, Any], value: Any) -> list[str]:
    """What is wrong, which is the same here and in another process."""
    found = [str(problem) for problem in await CHECK.problems(schema, value)]
    apart = await CHECK._check_apart(CHECK._plans.get(id(schema)), value)  # type: ignore[arg-type]
    assert [str(problem) for problem in apart] == found
    return found


@pytest.mark.requirement("D-05")
async def test_all_problems_come_at_once_each_with_its_path() -> None:
    """One problem a turn costs a model as many turns as there are problems."""
    schema = {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"type": "object", "required": ["name", "size"]}},
            "count": {"type": "integer", "minimum": 1},
            "mode": {"enum": ["r", "w"]},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    value = {"items": [{"name": 1, "size": 2}, {}, 3], "count": 0, "mode": "x", "mod": 1, "odd name": 1}
    assert sorted(await said(schema, value)) == [
        '["odd name"]: is not a known name',
        "count: found 0, expected at least 1",
        "items[1].name: is missing",
        "items[1].size: is missing",
        "items[2]: found 3, expected object",
        "mod: is not a known name. Did you mean 'mode'?",
        'mode: found "x", expected "r" or "w"',
        "path: is missing",
    ]


async def test_a_value_that_fits_has_no_problems() -> None:
    """The usual case; a mapping of any kind is an object."""
    schema = MappingProxyType({"type": "object", "properties": {"a": {"type": "number"}}})
    assert await CHECK.problems(schema, MappingProxyType({"a": 1.5})) == ()


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"type": ["string", "null"]}, 3, "found 3, expected string or null"),
        ({"const": True}, False, "found false, expected true"),
        ({"maxLength": 2}, "abc", 'found "abc", expected at most 2 characters'),
        ({"pattern": "^a"}, "b", 'found "b", expected text that fits the pattern "^a"'),
        ({"minItems": 1}, [], "found an array of 0 items, expected at least 1 items"),
        ({"uniqueItems": True}, [1, 1], "found an array of 2 items, expected no item twice"),
        ({"not": {}}, {}, "found an object of 0 properties, expected what 'not' in the schema allows"),
        ({"properties": {"a": False}}, {"a": 1}, "found 1, expected nothing at all"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", 'found "x", expected integer or null'),
        ({"oneOf": [{}, {}]}, 1, "found 1, which fits more than one of the alternatives"),
        (
            {"anyOf": [{"type": "string"}, {"properties": {"q": {"type": "integer"}}}]},
            {"q": "a"},
            'q: found "a", expected integer (in the nearest of several alternatives)',
        ),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"x1": 1, "y": 2}, "y: is not a known name"),
        (
            {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"a": {"required": True}}},
            {},
            "a: is missing",
        ),
    ],
)
async def test_a_problem_says_what_was_found_and_what_was_expected(schema: Any, value: Any, words: str) -> None:
    """Words that a model and a person can act on, not the library's own."""
    [found] = await said(schema, value)
    assert found == words


async def test_a_large_value_is_never_shown_whole() -> None:
    """Messages go into logs, records and prompts."""
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"enum": ["x" * 70] * 50}}}
    value: Any = {"a": "secret" * 100_000, "b": [1] * 100_000, "c": "y" * 100_000}
    assert [len(line) < 600 for line in await said(schema, value)] == [True] * 3
    assert len(await said({"items": {"type": "string"}}, list(range(10_000)))) == 100
    assert len(await said({"additionalProperties": False}, {str(number): 1 for number in range(10_000)})) == 100
    assert await said({"const": 1}, 10**5000) == ["found a number of 16610 bits, expected 1"]
    deep: Any = {"type": "string"}
    for _ in range(60):
        deep = {"properties": {"x" * 60: deep}}
    for _ in range(60):
        value = {"x" * 60: value}
    [found] = await said(deep, value)
    assert len(found) < 2_200


async def test_words_of_a_server_cannot_hide_or_move_anything_on_a_terminal() -> None:
    """Structured content and schemas come from strangers, and problems are shown to people."""
    lines = await said({"additionalProperties": {"const": "\u202e"}}, {"a\x1b[2J": "\x9b\u200b"})
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("dialect", "fits"),
    [("http://json-schema.org/draft-04/schema#", False), ("https://json-schema.org/draft/2020-12/schema", True)],
)
async def test_the_dialect_that_a_schema_names_is_honoured(dialect: str, fits: bool) -> None:
    """`exclusiveMaximum` was a flag once; read as a number it is no schema, and constrains nothing."""
    schema = {"$schema": dialect, "maximum": 3, "exclusiveMaximum": True}
    assert (await said(schema, 3) == []) is fits


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": 3},
        {"properties": []},
        {"$schema": {}},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"pattern": "\\p{L}"},
        {"multipleOf": 0},
    ],
)
async def test_a_schema_that_is_none_constrains_nothing(schema: dict[str, Any]) -> None:
    """The server knows its own tool better than a schema that nobody can read; the call still goes there."""
    assert await said(schema, "value") == []


async def test_one_part_that_cannot_be_applied_spoils_only_itself() -> None:
    """An expression that only another language understands must not switch off the rest."""
    schema = {"properties": {"a": {"pattern": "\\p{L}"}, "b": {"type": "string"}, "c": {"$ref": "other.json"}}}
    assert await said(schema, {"a": "1", "b": 1, "c": 1}) == ["b: found 1, expected string"]


async def test_a_remote_reference_is_never_fetched_and_constrains_nothing() -> None:
    """A schema that makes us open connections is a way into the network behind us."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        for reference in (url, f"{url}#/$defs/a"):
            assert await said({"properties": {"a": {"$ref": reference}, "b": {"type": "null"}}}, {"a": 1, "b": 1}) == [
                "b: found 1, expected null"
            ]
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize("keyword", ["minimum", "uniqueItems"])
async def test_only_so_many_schemas_are_kept_and_those_in_use_among_them(keyword: str) -> None:
    """A server may list its tools anew for ever, and a worker that forgot a schema must be told it again."""
    check = JSONSchemaCheck()
    first: dict[str, Any] = {"type": "string", keyword: 1}
    many = [{keyword: 1, "title": str(number)} for number in range(600)]
    for schema in many:
        await check.problems(schema, 1)
        await check.problems(first, 1)
    assert len(check._plans) == 512
    kept = check._plans.get(id(first))
    assert kept is not None
    assert kept.schema is first
    assert await check.problems(many[0], 0) == await check.problems(many[-1], 0)


@settings(max_examples=200)
@given(st.dictionaries(keywords, schemas, max_size=5), json_values)
async def test_no_schema_and_no_value_whatever_raises(schema: dict[str, Any], value: Any) -> None:
    """Both come from outside; a surprise here would be an exception in the agent."""
    for problem in await CHECK.problems(schema, value):
        assert problem.message


def test_the_library_is_loaded_at_the_first_check_only() -> None:
    """A one-shot command must not pay for checks that it does not make."""
    code = "import sys, squidbot.adapters.schemas.checker as c; c.JSONSchemaCheck(); print('jsonschema' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
