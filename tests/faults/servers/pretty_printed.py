"""Prints its answer over several lines."""

import json

from tests.faults.harness import Message, Server, Wire, result, said, serve


class PrettyPrinted(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(json.dumps(result(message, said("done")), indent=2).encode())


if __name__ == "__main__":
    serve(PrettyPrinted)
