"""The JSON Schema that ships, and what it tells an editor."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from squidbot.config.jsonschema import SCHEMA_FILE, schema_text, settings_schema
from squidbot.config.load import read_document

EXAMPLE = Path(__file__).parents[2] / "config.example.json"


@pytest.mark.requirement("A-07")
def test_the_shipped_schema_is_the_one_of_the_models() -> None:
    """Run `python -m squidbot.config.jsonschema` after changing a model."""
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text()


@pytest.mark.requirement("A-07", "A-01")
def test_the_example_fits_the_schema_it_points_to() -> None:
    """An editor that opens it must have nothing to complain of."""
    document = read_document(EXAMPLE)
    assert (EXAMPLE.parent / document["$schema"]).samefile(SCHEMA_FILE)
    jsonschema.Draft202012Validator(settings_schema()).validate(document)


@pytest.mark.requirement("A-07")
@pytest.mark.parametrize(
    "document",
    [
        {"tool": {}},
        {"tools": {"mcp_servers": {"a": {"transport": "htpp"}}}},
        {"tools": {"mcp_servers": {"a b": {"command": "x"}}}},
        {"tools": {"default_timeout": -1}},
        {"roles": {"r": {"tools": {"s": [3]}}}},
    ],
)
def test_the_schema_refuses_what_the_program_refuses(document: dict[str, Any]) -> None:
    """A red line in the editor is cheaper than a report."""
    assert not jsonschema.Draft202012Validator(settings_schema()).is_valid(document)


@pytest.mark.requirement("A-07")
def test_the_schema_allows_both_spellings_of_the_env_file_and_bare_grants() -> None:
    """What the program takes must not be underlined."""
    document = {
        "tools": {"mcp_servers": {"a": {"command": "x", "envFile": ".env", "args": ["x"]}, "filesystem": {}}},
        "roles": {"r": {"tools": {"s": ["a*", {"tool": "b", "when": {"x": ["y"]}}]}}},
    }
    jsonschema.Draft202012Validator(settings_schema()).validate(document)
