"""Wants more input whatever it is given, in the stateless era."""

from tests.faults.harness import Message, Server, Wire, note, reply, serve


class AsksForInputForEver(Server):
    def act(self, message: Message, wire: Wire) -> None:
        note("round")
        reply(wire, message, {"resultType": "input_required", "requestState": "again"})


if __name__ == "__main__":
    serve(AsksForInputForEver)
