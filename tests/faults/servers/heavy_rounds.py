"""Wants input again and again, with a large state that is to be sent back each time."""

from tests.faults.harness import Message, Server, Wire, note, reply, serve

SIZES = {"large": 4_000_000, "many_questions": 10}


class HeavyRounds(Server):
    def act(self, message: Message, wire: Wire) -> None:
        note("round")
        requests = {}
        if self.argument == "many_questions":
            requests = {str(n): {"method": "roots/list", "params": {}} for n in range(20_000)}
        state = "s" * SIZES[self.argument]
        reply(wire, message, {"resultType": "input_required", "requestState": state, "inputRequests": requests})


if __name__ == "__main__":
    serve(HeavyRounds)
