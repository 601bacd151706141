"""Answers with an id that nobody awaits."""

from typing import Any

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class WrongId(Server):
    def act(self, message: Message, wire: Wire) -> None:
        ids: dict[str, Any] = {
            "other": message["id"] + 1,
            "null": None,
            "float": float(message["id"]),
            "true": True,
            "list": [message["id"]],
            "object": {"id": message["id"]},
            "text": "abc",
        }
        wire.frame(encoded({**result(message, said("done")), "id": ids[self.argument]}))
        wire.hold()


if __name__ == "__main__":
    serve(WrongId)
