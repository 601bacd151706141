"""Starts a new process whenever one of its processes is killed."""

import os
import signal

from tests.faults.harness import Server, serve, wait_for_ever


class ForksWithoutEnd(Server):
    def started(self) -> None:
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, lambda *_: os.fork() and os._exit(0))
            wait_for_ever()


if __name__ == "__main__":
    serve(ForksWithoutEnd)
