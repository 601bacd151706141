"""Refuses a call with an error of as many million characters as it is told."""

from tests.faults.harness import Message, Server, Wire, encoded, refusal, serve


class LargeError(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(encoded(refusal(message, "e" * int(self.argument) * 1_000_000)))


if __name__ == "__main__":
    serve(LargeError)
