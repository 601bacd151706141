"""Does not end when its input does, and not when it is asked to."""

import signal

from tests.faults.harness import Server, serve, wait_for_ever


class IgnoresEof(Server):
    def started(self) -> None:
        if self.argument == "term":
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)

    def ended(self) -> None:
        wait_for_ever()


if __name__ == "__main__":
    serve(IgnoresEof)
