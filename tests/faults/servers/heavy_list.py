"""Lists as much as one message may hold: in one tool, in two thousand, or on page after page."""

from typing import Any

from tests.faults.harness import OBJECT, Message, Server, Wire, note, reply, serve

PAGES = 30


class HeavyList(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        page = int(message.get("params", {}).get("cursor", 0))
        note("page")
        answer: Message = {"tools": [*(self.tools if page == 0 else []), *self.lots(page)]}
        if self.argument.endswith("pages") and page < PAGES:
            answer["nextCursor"] = str(page + 1)
        reply(wire, message, answer)

    def lots(self, page: int) -> list[Any]:
        match self.argument:
            case "properties":
                return [wide({"properties": {f"p{n}": {"type": "string"} for n in range(95_000)}})]
            case "choices":
                return [wide({"enum": list(range(10)) * 29_000})]
            case "tools":
                inner = {f"p{n}": {"type": "string"} for n in range(40)}
                wordy = {**wide({"properties": inner}), "description": "y" * 3_000}
                return [{**wordy, "name": f"t{n}"} for n in range(1_900)]
            case "wordy_pages":
                return [{"name": f"t{page}", "inputSchema": OBJECT, "description": "x" * 9_000_000}] if page else []
            case _:
                return [{**wide({"enum": list(range(10)) * 29_000}), "name": f"t{page}"}] if page else []


def wide(schema: Message) -> Message:
    return {"name": "wide", "inputSchema": {**OBJECT, **schema}}


if __name__ == "__main__":
    serve(HeavyList)
