"""Is gone in the middle of a call, the first time."""

import os
import signal

from tests.faults.harness import Message, Server, Wire, note, serve


class CrashesMidCall(Server):
    def act(self, message: Message, wire: Wire) -> None:
        note("act")
        if self.argument == "signal":
            os.kill(os.getpid(), signal.SIGKILL)
        wire.drop()


if __name__ == "__main__":
    serve(CrashesMidCall)
