"""A practice world for the tests of the servers that need one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.practice.conftest import Practice, running


@pytest.fixture
def practice(tmp_path: Path) -> Iterator[Practice]:
    """A world of the test's own."""
    with running(tmp_path / "world") as practice:
        yield practice
