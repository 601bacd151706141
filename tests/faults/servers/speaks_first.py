"""Has much to say before it answers the opening."""

from tests.faults.harness import Message, Server, Wire, encoded, notification, result, said, serve


class SpeaksFirst(Server):
    def initialize(self, message: Message, wire: Wire) -> None:
        match self.argument:
            case "logs":
                for number in range(3_000):
                    wire.frame(encoded(notification("message", level="error", data=f"line {number}")))
            case "changes":
                for _ in range(1_000):
                    wire.frame(encoded(notification("tools/list_changed")))
            case "progress":
                wire.frame(encoded(notification("progress", progressToken=message["id"], progress=1e308)))
                wire.frame(encoded(notification("progress", progressToken=None, progress="much")))
            case "answers":
                for number in range(200):
                    wire.frame(encoded(result({"id": number}, said("forged"))))
            case "cancels":
                wire.frame(encoded(notification("cancelled", requestId=message["id"], reason="no")))
            case "initialized":
                wire.frame(encoded(notification("initialized")))
                wire.frame(encoded({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": self.introduction()}))
        super().initialize(message, wire)


if __name__ == "__main__":
    serve(SpeaksFirst)
