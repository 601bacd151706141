"""Answers the question for its revisions with what cannot be one."""

from typing import Any

from tests.faults.harness import MODERN, Message, Server, Wire, encoded, reply, serve


class LyingDiscovery(Server):
    def discover(self, message: Message, wire: Wire) -> None:
        good = {"supportedVersions": [MODERN], "capabilities": self.capabilities}
        changed: dict[str, Any] = {
            "text": {"supportedVersions": MODERN},
            "numbers": {"supportedVersions": [2026, 7, 28]},
            "none": {"supportedVersions": []},
            "old": {"supportedVersions": ["2024-11-05"]},
            "huge": {"supportedVersions": [*(f"v{n}" for n in range(9_000)), MODERN]},
            "ttl": {"ttlMs": -5, "cacheScope": "everybody"},
            "capabilities": {"capabilities": "all"},
            "result_type": {"resultType": "input_required"},
        }
        if self.argument == "refused_for_itself":
            data = {"supported": [MODERN], "requested": MODERN}
            error = {"code": -32022, "message": "unsupported", "data": data}
            wire.frame(encoded({"jsonrpc": "2.0", "id": message["id"], "error": error}))
            return
        reply(wire, message, {**good, **changed[self.argument]})


if __name__ == "__main__":
    serve(LyingDiscovery)
