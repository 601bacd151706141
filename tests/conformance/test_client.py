"""The protocol's own judge on our client: every scenario that a revision requires, sign-in included."""

from pathlib import Path

import pytest

from tests.conformance.judge import DEADLINE, PACKAGE, REVISIONS, judge, required
from tests.fixtures.needs import peer
from tests.peers.install import node_program

CLIENT = Path(__file__).with_name("client.py")


@pytest.mark.peers
@pytest.mark.deadline(DEADLINE + 10)
@pytest.mark.requirement("B-04", "B-05", "B-13")
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_client_passes_every_scenario_that_the_revision_requires(revision: str) -> None:
    """What we say of both eras is worth something only if somebody else says it too."""
    peer(lambda: node_program(PACKAGE))
    verdicts = {verdict.scenario: verdict for verdict in judge(CLIENT, revision) if verdict.is_required}
    assert set(verdicts) == set(required(revision)), "the judge did not play every scenario"
    assert [verdict for verdict in verdicts.values() if not verdict.passed] == []
