"""Refuses a call with an error of 20 MB."""

from tests.faults.harness import Message, Server, Wire, encoded, refusal, serve


class LargeError(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(encoded(refusal(message, "e" * 20_000_000)))


if __name__ == "__main__":
    serve(LargeError)
