"""Every test of the store on SQLite, and on a real PostgreSQL that the whole run shares."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.postgres_server import new_database, postgres_server
from tests.fixtures.trail import Place


@pytest.fixture(scope="session")
def postgres(testrun_uid: str) -> Iterator[str]:
    """The url of a server; parallel workers share one, and the last of them stops it."""
    with postgres_server(testrun_uid) as url:
        yield url


@pytest.fixture
def postgres_place(postgres: str, tmp_path: Path) -> Place:
    return Place(new_database(postgres), tmp_path / "state")


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return Place(None, tmp_path / "state")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> Place:
    """A new, empty database of each kind."""
    found: Place = request.getfixturevalue("sqlite_place" if request.param == "sqlite" else "postgres_place")
    return found
