"""The places of the matrix: every transport, in both eras."""

from collections.abc import Iterator
from typing import get_args

import pytest

from squidbot.adapters.mcp.transports.table import TRANSPORTS
from tests.fixtures.meeting import ERAS, Place, in_memory
from tests.fixtures.running import Entry, running
from tests.fixtures.serve import TransportOnNetwork
from tests.fixtures.world import build

NETWORK: tuple[TransportOnNetwork, ...] = get_args(TransportOnNetwork)
ALL = [(transport, era) for transport in ("stdio", *NETWORK, "memory") for era in ERAS]


@pytest.fixture(scope="session")
def listening() -> Iterator[dict[str, Entry]]:
    """One world per transport of the network, shared by all tests of the matrix, which tell their calls by tokens."""
    with running("sse") as sse, running("websocket") as websocket, running("http") as http:
        yield {"sse": sse, "websocket": websocket, "http": http}


@pytest.fixture(params=ALL, ids=[f"{transport}-{era}" for transport, era in ALL])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A world that is to be met over one transport in one era."""
    transport, era = request.param
    match transport:
        case "memory":
            yield Place(transport, era, {"command": "in-memory"}, in_memory(build()))
        case "stdio":
            with running("stdio") as entry:
                yield Place(transport, era, entry, TRANSPORTS)
        case _:
            yield Place(transport, era, request.getfixturevalue("listening")[transport], TRANSPORTS)


@pytest.fixture(params=ALL, ids=[f"{transport}-{era}" for transport, era in ALL])
def paged_place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A world of its own whose lists come in pages of four."""
    transport, era = request.param
    if transport == "memory":
        yield Place(transport, era, {"command": "in-memory"}, in_memory(build(page_size=4)))
    else:
        with running(transport, "--page-size", "4") as entry:
            yield Place(transport, era, entry, TRANSPORTS)
