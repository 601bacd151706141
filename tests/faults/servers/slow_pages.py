"""Needs half a second for each of its pages, of which there is always one more."""

import time
from typing import Any

from tests.faults.harness import ACT, ECHO, OBJECT, Message, Server, Wire, reply, serve


class SlowPages(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        page = int(message.get("params", {}).get("cursor", "0") or 0)
        if page:
            time.sleep(0.5)
        tools: list[Any] = [ACT, ECHO] if page == 0 else [{"name": f"t{page}", "inputSchema": OBJECT}]
        reply(wire, message, {"tools": tools, "nextCursor": str(page + 1)})


if __name__ == "__main__":
    serve(SlowPages)
