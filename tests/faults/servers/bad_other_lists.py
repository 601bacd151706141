"""Has tools that work, and lists of prompts and resources that do not."""

from typing import Any

from tests.faults.harness import Message, Server, Wire, encoded, refusal, reply, serve

_KEYS = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


class BadOtherLists(Server):
    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        self.capabilities |= {"prompts": {"listChanged": True}, "resources": {"subscribe": True}}

    def take(self, message: Message, wire: Wire) -> None:
        key = _KEYS.get(message.get("method", ""))
        if key is None:
            super().take(message, wire)
            return
        match self.argument:
            case "hang":
                wire.hold()
            case "error":
                wire.frame(encoded(refusal(message, "\x1b[31mno such table")))
            case "items":
                bad: list[Any] = [
                    None,
                    5,
                    {},
                    {"name": 5},
                    {"name": "p", "arguments": 3},
                    {"name": "q", "arguments": [None, {}]},
                ]
                bad += [{"uri": None}, {"uri": "x:\u202e", "size": "big"}, {"uriTemplate": "{" * 100}]
                reply(wire, message, {key: bad})
            case "no_list":
                reply(wire, message, {key: "none"})
            case "endless":
                reply(wire, message, {key: [], "nextCursor": "c" + str(message["id"])})
            case "many":
                item = {"name": "n", "uri": "x:y", "uriTemplate": "x:{y}"}
                reply(wire, message, {key: [{**item, "name": f"n{n}", "uri": f"x:{n}"} for n in range(5_000)]})


if __name__ == "__main__":
    serve(BadOtherLists)
