"""Needs a second and a half for its first answer."""

import time

from tests.faults.harness import Message, Server, Wire, serve


class SlowStart(Server):
    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        self.woken = False

    def take(self, message: Message, wire: Wire) -> None:
        if not self.woken:
            time.sleep(float(self.argument or "1.5"))
            self.woken = True
        super().take(message, wire)


if __name__ == "__main__":
    serve(SlowStart)
