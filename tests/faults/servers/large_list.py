"""Has more to list than anybody can use."""

from typing import Any

from tests.faults.harness import ACT, OBJECT, Message, Server, Wire, reply, serve


class LargeList(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        lots: dict[str, list[Any]] = {
            "tools": [{"name": f"t{n}", "inputSchema": OBJECT} for n in range(10_000)],
            "description": [{**ACT, "name": "wordy", "description": "x" * 9_000_000}],
            "name": [{**ACT, "name": "n" * 1_000_000}],
            "schema": [
                {
                    **ACT,
                    "name": "wide",
                    "inputSchema": {**OBJECT, "properties": {f"p{n}": OBJECT for n in range(20_000)}},
                }
            ],
            "deep": [{**ACT, "name": "deep", "inputSchema": self.deep(150)}],
            "twenty_mb": [{**ACT, "name": "wordy", "description": "x" * 20_000_000}],
        }
        reply(wire, message, {"tools": [*self.tools, *lots[self.argument]]})

    def deep(self, levels: int) -> Message:
        schema: Message = dict(OBJECT)
        for _ in range(levels // 2):
            schema = {**OBJECT, "properties": {"inner": schema}}
        return schema


if __name__ == "__main__":
    serve(LargeList)
