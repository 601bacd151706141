"""The protocol's own judge on the gateway: every scenario that a revision requires, with a full server behind it."""

import pytest

from tests.conformance.gateway import judge
from tests.conformance.judge import DEADLINE, PACKAGE, required
from tests.fixtures.needs import peer
from tests.peers.install import node_program


@pytest.mark.anyio
@pytest.mark.peers
@pytest.mark.deadline(DEADLINE + 10)
@pytest.mark.requirement("G-01", "G-08", "C-08")
@pytest.mark.parametrize(
    ("revision", "era"), [("2025-11-25", "legacy"), ("2025-11-25", "modern"), ("2026-07-28", "modern")]
)
async def test_the_gateway_passes_every_scenario_that_the_revision_requires(revision: str, era: str) -> None:
    """A gateway that loses part of the protocol between a server and a client is no door but a wall."""
    peer(lambda: node_program(PACKAGE))
    verdicts = {verdict.scenario: verdict for verdict in await judge(revision, era) if verdict.is_required}
    assert set(verdicts) == set(required(revision, "server")), "the judge did not play every scenario"
    assert [verdict for verdict in verdicts.values() if not verdict.passed] == []
