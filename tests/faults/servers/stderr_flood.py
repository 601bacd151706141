"""Writes 64 MB to its standard error before it answers."""

import os

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class StderrFlood(Server):
    def act(self, message: Message, wire: Wire) -> None:
        for _ in range(1024):
            os.write(2, (b"e" * 127 + b"\n") * 512)
        reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(StderrFlood)
