"""Says that it can do what makes no sense."""

from typing import Any

from tests.faults.harness import Message, Server, serve


class LyingCapabilities(Server):
    def introduction(self) -> Message:
        deep: Any = {}
        for _ in range(140):
            deep = {"more": deep}
        capabilities: dict[str, Any] = {
            "list": [],
            "null": None,
            "true": True,
            "tools_true": {"tools": True},
            "tools_null": {"tools": None},
            "nothing": {},
            "deep": {"tools": {}, "experimental": {"deep": deep}},
            "large": {"tools": {}, "experimental": {f"e{n}": {"x": "y" * 100} for n in range(20_000)}},
            "heavy": {"tools": {}, "experimental": {f"e{n}": {"x": [1, 2]} for n in range(40_000)}},
            "unknown": {"tools": {"listChanged": "perhaps"}, "telepathy": {"range": 5}},
        }
        return {**super().introduction(), "capabilities": capabilities[self.argument]}


if __name__ == "__main__":
    serve(LyingCapabilities)
