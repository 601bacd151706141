"""Answers the opening with a version that does not exist."""

from typing import Any

from tests.faults.harness import Message, Server, serve


class WrongVersion(Server):
    def introduction(self) -> Message:
        versions: dict[str, Any] = {"unknown": "1999-01-01", "number": 20250618, "missing": None}
        return {**super().introduction(), "protocolVersion": versions[self.argument]}


if __name__ == "__main__":
    serve(WrongVersion)
