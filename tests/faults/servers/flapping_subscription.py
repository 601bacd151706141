"""Takes a subscription, and ends it in a way of its own."""

from tests.faults.harness import Message, Server, Wire, encoded, note, refusal, reply, serve


class FlappingSubscription(Server):
    def take(self, message: Message, wire: Wire) -> None:
        if message.get("method") != "subscriptions/listen":
            super().take(message, wire)
            return
        note("listen")
        match self.argument:
            case "ends_at_once":
                reply(wire, message, {})
            case "refused":
                wire.frame(encoded(refusal(message, "not today")))
            case "never":
                wire.hold()
            case "nonsense":
                wire.frame(b'{"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": 5}')
                reply(wire, message, [])


if __name__ == "__main__":
    serve(FlappingSubscription)
