"""The API is what its document says: held to it by schemathesis, with what fits and with what does not."""

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import positive_data_acceptance

from squidbot.gateway.api.openapi import document
from squidbot.gateway.api.table import OPERATIONS
from tests.fixtures.house import House

pytestmark = [pytest.mark.requirement("G-01"), pytest.mark.deadline(300)]

load_all_checks()
EXAMPLES = {"admin": 20, "auditor": 8, "developer": 8}
"""Of what fits and of what does not, for each operation."""
SAYS_MORE = {"calls", "usage", "call_tool", "create_token"}
"""Whose words have a meaning that no schema tells: a point in time, a cursor, a name that can be shown, a tool's own arguments."""
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


@pytest.mark.parametrize("who", EXAMPLES)
def test_every_answer_is_as_the_document_says(tmp_path: Path, who: str) -> None:
    """A program that was made from the document must never meet an answer that is not in it, nor a 5xx."""
    house = House(tmp_path)
    tried = set()
    with house.serve_aside() as (url, portal):
        token = portal.call(house.token, who)
        schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json").exclude(path="/api/v1/calls/stream")
        for found in schema.get_all_operations():
            operation: Any = found.ok()  # type: ignore[union-attr]
            tried.add((operation.method.upper(), operation.path))
            for mode in MODES:
                _ask(operation, mode, token, EXAMPLES[who])
    assert tried == {(item.method, f"/api/v1{item.path}") for item in OPERATIONS if not item.stream}
    assert house.faults == []


def _ask(operation: Any, mode: schemathesis.GenerationMode, token: str, examples: int) -> None:
    named = operation.definition.raw["operationId"]
    without = [positive_data_acceptance] if named in SAYS_MORE else []

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        # What is wrong must also arrive: a value of nothing leaves its name out of the address.
        assume(not any(_vanishes(value) for value in (case.query or {}).values()))
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, excluded_checks=without, timeout=20)

    ask()


def _vanishes(value: object) -> bool:
    return value is None or (isinstance(value, list | tuple | dict) and all(map(_vanishes, value)))


def test_the_document_names_every_operation_once() -> None:
    """Two operations of one name would be one function in a client."""
    names = [operation.id for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert len(document("1")["paths"]) == len({operation.path for operation in OPERATIONS})
