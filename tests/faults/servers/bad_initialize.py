"""Answers the opening with something that is no answer to it."""

from typing import Any

from tests.faults.harness import Message, Server, Wire, encoded, refusal, result, serve


class BadInitialize(Server):
    def initialize(self, message: Message, wire: Wire) -> None:
        answers: dict[str, Any] = {
            "error": refusal(message, "the licence has expired"),
            "null": result(message, None),
            "text": result(message, "hello"),
            "empty": result(message, {}),
            "no_capabilities": result(message, {"protocolVersion": self.version}),
            "wrong_id": {**result(message, self.introduction()), "id": 4711},
            "null_id": {**result(message, self.introduction()), "id": None},
            "no_id": {"jsonrpc": "2.0", "result": self.introduction()},
            "neither": {"jsonrpc": "2.0", "id": message["id"]},
        }
        wire.frame(encoded(answers[self.argument]))


if __name__ == "__main__":
    serve(BadInitialize)
