"""Tells and asks, beside its answer, what has a hundred thousand values in it, or is as long as a message may be."""

from typing import Any

from tests.faults.harness import Message, Server, Wire, encoded, notification, reply, said, serve

ASKED: dict[str, tuple[str, Any]] = {
    "sampling": (
        "sampling/createMessage",
        {"maxTokens": 1, "messages": [{"role": "user", "content": {"type": "text", "text": "x"}}] * 30_000},
    ),
    "elicitation": (
        "elicitation/create",
        {"message": "m", "requestedSchema": {"properties": {f"p{n}": {"type": "string"} for n in range(90_000)}}},
    ),
}
TOLD: dict[str, Any] = {"numbers": list(range(10)) * 29_000, "objects": [{"a": 1, "b": 2}] * 95_000}


LONG = "x" * 9_000_000
LONG_WORDS: dict[str, Message] = {
    "long_logs": notification("message", level="info", data=LONG),
    "long_updates": notification("resources/updated", uri=LONG),
    "long_methods": {"jsonrpc": "2.0", "method": LONG},
    "long_questions": {"jsonrpc": "2.0", "id": "q", "method": LONG},
}


class HeavyWords(Server):
    def act(self, message: Message, wire: Wire) -> None:
        if self.argument in LONG_WORDS:
            said_again = encoded(LONG_WORDS[self.argument])
            for _ in range(12):
                wire.frame(said_again)
        for number in range(0 if self.argument in LONG_WORDS else 3):
            if self.argument in ASKED:
                method, params = ASKED[self.argument]
                wire.frame(encoded({"jsonrpc": "2.0", "id": f"q{number}", "method": method, "params": params}))
            else:
                wire.frame(encoded(notification("message", level="info", data=TOLD[self.argument])))
        reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(HeavyWords)
