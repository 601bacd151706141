"""Leaves a process behind that has cut all ties, and holds its output open; kills or stops whoever would end it."""

import os
import signal

from tests.faults.harness import Message, Server, Wire, serve, wait_for_ever


class DaemonGrandchild(Server):
    def started(self) -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(
                    number, signal.SIG_IGN if self.argument in ("stubborn", "orphan", "sleeper") else signal.SIG_DFL
                )
            wait_for_ever()

    def act(self, message: Message, wire: Wire) -> None:
        if self.argument == "crash":
            os._exit(9)
        if self.argument == "orphan":
            os.kill(os.getppid(), signal.SIGKILL)
        if self.argument == "sleeper":
            os.kill(os.getppid(), signal.SIGSTOP)
        super().act(message, wire)


if __name__ == "__main__":
    serve(DaemonGrandchild)
