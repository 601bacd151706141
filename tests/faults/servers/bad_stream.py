"""Opens a stream of events in which the answer never comes."""

import time

from tests.faults.harness import Server, encoded, note, result, said, serve
from tests.faults.network import EventsWire, Exchange


class BadStream(Server):
    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("params", {}).get("name") != "act":
            return False
        note("act")
        wire = EventsWire(exchange)
        good = encoded(result(message, said("done")))
        match self.argument:
            case "empty":
                wire.close()
            case "half_event":
                wire.raw(b"data: " + good[:30])
                wire.close()
            case "unfinished_event":
                wire.raw(b"data: " + good + b"\n")
                wire.close()
            case "keepalive":
                while True:
                    wire.raw(b": still here\n\n")
                    time.sleep(0.05)
            case "other_events":
                wire.event(b"weather", b"data: rain")
                wire.event(b"ping", b"")
                wire.frame(good)
                wire.close()
            case "retry_only":
                wire.raw(b"retry: 0\n\n")
                wire.close()
            case "resumed_for_ever":
                wire.raw(b"id: 1\nretry: 1\ndata:\n\n")
                wire.close()
            case "reset":
                wire.raw(b": hello\n\n")
                wire.drop()
            case "garbage":
                wire.raw(bytes(range(256)) * 4)
                wire.close()
        return True


if __name__ == "__main__":
    serve(BadStream)
