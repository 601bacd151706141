"""Lists something else each time that it is asked, and on each page."""

import itertools
from typing import Any

from tests.faults.harness import ACT, ECHO, OBJECT, Message, Server, Wire, reply, serve

_TIMES = itertools.count()


class ChangingList(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        cursor = (message.get("params") or {}).get("cursor")
        other: Any = {**ACT, "description": "Another of that name", "inputSchema": {**OBJECT, "required": ["x"]}}
        pages: dict[str, Any] = {
            "names_again": [other, {**ECHO, "description": "forged"}],
            "object": {"act": other},
            "text": "act, echo",
            "null": None,
            "nested": [[other], [[ECHO]]],
            "numbers": list(range(5_000)),
        }
        match self.argument:
            case "shrinks" if next(_TIMES):
                reply(wire, message, {"tools": [ECHO, ACT], "nextCursor": None})
            case "shrinks":
                reply(wire, message, {"tools": [*self.tools, *({**ACT, "name": f"t{n}"} for n in range(100))]})
            case "cursor_object":
                reply(wire, message, {"tools": self.tools, "nextCursor": {"page": 2}})
            case _ if cursor is None:
                reply(wire, message, {"tools": self.tools, "nextCursor": "two"})
            case _:
                reply(wire, message, {"tools": pages[self.argument]})


if __name__ == "__main__":
    serve(ChangingList)
