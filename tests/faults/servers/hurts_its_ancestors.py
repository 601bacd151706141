"""Kills or stops every process above it that is there to start servers and to end them, but not squidbot."""

import os
import signal
import time

from tests.faults.harness import Message, Server, Wire, serve


class HurtsItsAncestors(Server):
    def act(self, message: Message, wire: Wire) -> None:
        # From the top down, or the first blow would cut the way to the others.
        for number in reversed(self.keepers()):
            os.kill(number, signal.Signals[self.argument])
        time.sleep(0.3)
        super().act(message, wire)

    def keepers(self) -> list[int]:
        found: list[int] = []
        number = os.getppid()
        while number > 1 and b"/mcp/" in self.about(number, "cmdline"):
            found.append(number)
            number = int(self.about(number, "stat").rpartition(b")")[2].split()[1])
        return found

    def about(self, number: int, what: str) -> bytes:
        with open(f"/proc/{number}/{what}", "rb") as file:  # noqa: PTH123 - pathlib is half of the start time
            return file.read()


if __name__ == "__main__":
    serve(HurtsItsAncestors)
