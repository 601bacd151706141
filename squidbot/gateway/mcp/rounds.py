"""What a server of the stateless era asks for by its answer, and the state that it wants back: only from the same caller."""

from collections.abc import Mapping
from typing import Any

from squidbot.gateway.mcp.parked import is_parked
from squidbot.gateway.mcp.results import asks_for_input
from squidbot.gateway.mcp.seal import Seal
from squidbot.gateway.mcp.visit import Visit

PARKED = "parked"
_PURPOSE = "mcp-request-state"


class Rounds:
    """Seals a server's state with whom, and which request, it belongs to."""

    def __init__(self) -> None:
        self.seal: Seal | None = None
        """Given before the first request."""

    def given(self, visit: Visit, method: str, name: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """What a client came back with, as its server knows it; None for a state that is not this client's."""
        if not visit.is_modern:
            return {}
        given = {"inputResponses": params["inputResponses"]} if "inputResponses" in params else {}
        state = params.get("requestState")
        if state is None:
            return given
        content = self._seal.open(_PURPOSE, state) if isinstance(state, str) else None
        if content is None or content["of"] != self._of(visit, method, name):
            return None
        return {**given, PARKED if content.get("parked") else "requestState": content["state"]}

    def asked(self, visit: Visit, method: str, name: str, wire: dict[str, Any]) -> dict[str, Any]:
        """An answer for the client: a state in it is sealed."""
        if asks_for_input(wire) and isinstance(wire.get("requestState"), str):
            content = {"of": self._of(visit, method, name), "state": wire["requestState"]}
            if is_parked(wire):
                content["parked"] = True
            wire["requestState"] = self._seal.close(_PURPOSE, content)
        return wire

    @property
    def _seal(self) -> Seal:
        if self.seal is None:
            raise RuntimeError("the endpoint has no key yet")
        return self.seal

    def _of(self, visit: Visit, method: str, name: str) -> list[Any]:
        return [*visit.identity, visit.server, method, name]
