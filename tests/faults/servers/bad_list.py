"""Answers the question for its tools with what is no list."""

from typing import Any

from tests.faults.harness import ACT, Message, Server, Wire, encoded, refusal, reply, serve


class BadList(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        lists: dict[str, Any] = {
            "missing": {},
            "null": {"tools": None},
            "object": {"tools": {"act": ACT}},
            "text": {"tools": "act"},
        }
        if self.argument == "error":
            wire.frame(encoded(refusal(message, "the tools are on holiday")))
        else:
            reply(wire, message, lists[self.argument])


if __name__ == "__main__":
    serve(BadList)
