"""Sends a signal to whoever started it."""

import os
import signal

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class HurtsItsParent(Server):
    def act(self, message: Message, wire: Wire) -> None:
        os.kill(os.getppid(), getattr(signal, self.argument))
        reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(HurtsItsParent)
