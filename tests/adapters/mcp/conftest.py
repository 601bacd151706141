"""What the tests of this folder share: a look at the log."""

from collections.abc import Iterator

import pytest
from loguru import logger


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The warnings that are logged meanwhile, each with all its lines."""
    found: list[str] = []
    sink = logger.add(lambda line: found.append(str(line)), format="{message}", level="WARNING")
    logger.enable("squidbot")
    yield found
    logger.remove(sink)
