"""Answers each call with something of another kind."""

import itertools
from typing import Any

from tests.faults.harness import Message, Server, Wire, encoded, refusal, reply, said, serve

_TIMES = itertools.count()


class ChangingAnswer(Server):
    def act(self, message: Message, wire: Wire) -> None:
        answers: list[Any] = [
            {"content": {"type": "text", "text": "one"}},
            {"content": [], "structuredContent": [1]},
            {"content": [{"type": "text", "text": "x", "annotations": 7, "_meta": []}], "_meta": "none"},
            {"tools": []},
            {"contents": [{"uri": "x:y", "text": "z"}]},
            {"content": [{"type": "text", "text": "done"}], "isError": None, "structuredContent": "text"},
            [],
            None,
            5,
        ]
        turn = next(_TIMES)
        if turn < len(answers):
            reply(wire, message, answers[turn])
        else:
            wire.frame(encoded(refusal(message, "enough"))) if turn % 2 else reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(ChangingAnswer)
