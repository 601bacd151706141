"""Answers with NaN and the infinities, which JSON does not have."""

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class OddNumbers(Server):
    def act(self, message: Message, wire: Wire) -> None:
        value = {"nan": float("nan"), "inf": float("inf"), "less": float("-inf")}
        reply(wire, message, {**said("done"), "structuredContent": value})


if __name__ == "__main__":
    serve(OddNumbers)
