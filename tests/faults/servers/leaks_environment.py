"""Tells everybody all that it knows: in its answer, in its error, and on its standard error."""

import json
import os

from tests.faults.harness import Message, Server, Wire, encoded, refusal, reply, said, serve


class LeaksEnvironment(Server):
    def act(self, message: Message, wire: Wire) -> None:
        known = json.dumps(dict(os.environ))
        os.write(2, known.encode() + b"\n")
        match message["params"]["arguments"].get("how"):
            case "answer":
                reply(wire, message, said(known))
            case "exit":
                os._exit(1)
            case _:
                wire.frame(encoded(refusal(message, known, code=-1)))


if __name__ == "__main__":
    serve(LeaksEnvironment)
