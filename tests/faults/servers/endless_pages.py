"""Has always one page more."""

from typing import Any

from tests.faults.harness import ACT, ECHO, OBJECT, Message, Server, Wire, note, reply, serve


class EndlessPages(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        page = int(message.get("params", {}).get("cursor", "0")[-9:] or 0)
        note("page")
        tools: list[Any] = [ACT, ECHO] if page == 0 else [{"name": f"t{page}", "inputSchema": OBJECT}]
        cursors: dict[str, Any] = {
            "new": str(page + 1),
            "repeated": "1",
            "number": 7,
            "empty": "",
            "huge": "1".rjust(1_000_000, "0") if page == 0 else None,
        }
        if self.argument == "blank":
            tools = tools if page == 0 else []
        reply(wire, message, {"tools": tools, "nextCursor": cursors.get(self.argument, str(page + 1))})


if __name__ == "__main__":
    serve(EndlessPages)
