"""Programs that are not installed: a test says how to get them, and CI does not pass without them."""

import pytest

from tests.fixtures.needs import peer, require
from tests.peers.install import ENVIRONMENTS, PeerMissing, node_program, python_program


def test_a_missing_peer_says_how_to_get_it() -> None:
    """Whoever reads the message must not have to search."""
    with pytest.raises(PeerMissing, match="make peers"):
        node_program("no-such-package")
    with pytest.raises(PeerMissing, match="make peers"):
        python_program("modern", "no-such-program")


def test_a_test_is_skipped_without_its_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contributor without a network can still run the rest."""
    monkeypatch.delenv("SQUIDBOT_REQUIRE_ALL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="make peers"):
        peer(lambda: node_program("no-such-package"))


def test_a_test_fails_without_its_peer_where_all_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """A skipped test proves nothing, so CI skips none."""
    monkeypatch.setenv("SQUIDBOT_REQUIRE_ALL", "1")
    with pytest.raises(pytest.fail.Exception, match="get it there"):
        require(False, "get it there")
    require(True, "never asked")


def test_every_package_is_pinned_to_one_version() -> None:
    """A peer that changes overnight breaks a run that nobody touched."""
    for environment in ENVIRONMENTS:
        separator = "==" if environment.kind == "python" else "@"
        for package in environment.packages:
            name, _, version = package.rpartition(separator)
            assert name
            assert version[0].isdigit()
