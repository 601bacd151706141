"""Does not take being told which log messages are wanted."""

from tests.faults.harness import Message, Server, Wire, encoded, refusal, serve


class IgnoresLogLevel(Server):
    def take(self, message: Message, wire: Wire) -> None:
        if message.get("method") != "logging/setLevel":
            super().take(message, wire)
        elif self.argument == "hangs":
            wire.hold()
        else:
            wire.frame(encoded(refusal(message, "Method not found", code=-32601)))


if __name__ == "__main__":
    serve(IgnoresLogLevel)
