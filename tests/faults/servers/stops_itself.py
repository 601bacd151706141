"""Freezes, as a process does that was sent SIGSTOP."""

import os
import signal

from tests.faults.harness import Message, Server, Wire, note, serve


class StopsItself(Server):
    def act(self, message: Message, wire: Wire) -> None:
        note("act")
        os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    serve(StopsItself)
