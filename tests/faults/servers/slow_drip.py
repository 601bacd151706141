"""Answers a byte at a time, without end in sight."""

import time

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class SlowDrip(Server):
    def act(self, message: Message, wire: Wire) -> None:
        answer = encoded(result(message, said("drip " * 200)))
        if wire.transport in ("http", "sse"):
            answer = b"data: " + answer + b"\n\n"
        for byte in answer:
            wire.raw(bytes([byte]))
            time.sleep(0.02)


if __name__ == "__main__":
    serve(SlowDrip)
