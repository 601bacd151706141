"""Is killed by a signal before it says anything."""

import os
import signal

from tests.faults.harness import Server, serve


class KilledAtStart(Server):
    def started(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


if __name__ == "__main__":
    serve(KilledAtStart)
