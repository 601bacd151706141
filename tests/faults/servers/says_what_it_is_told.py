"""Answers with exactly the bytes that the call's own arguments ask for, so that a test can be the server."""

import base64

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class SaysWhatItIsTold(Server):
    def act(self, message: Message, wire: Wire) -> None:
        arguments = message["params"]["arguments"]
        for kind, told in arguments.get("say", []):
            data = base64.b64decode(told).replace(b"$ID", str(message["id"]).encode())
            (wire.frame if kind == "frame" else wire.raw)(data)
        match arguments.get("then"):
            case "drop":
                wire.drop()
            case "nothing":
                wire.hold()
            case _:
                reply(wire, message, said("mine"))


if __name__ == "__main__":
    serve(SaysWhatItIsTold)
