"""Needs a second and a half after its input has ended to save its work."""

import time

from tests.faults.harness import Server, note, serve


class SlowFlush(Server):
    def ended(self) -> None:
        time.sleep(1.5)
        note("flushed")


if __name__ == "__main__":
    serve(SlowFlush)
