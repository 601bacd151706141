"""Says on the stream for what is unasked what does not belong there."""

import os

from tests.faults.harness import Server, encoded, notification, serve
from tests.faults.network import EventsWire, Exchange


class BusyStream(Server):
    def http(self, exchange: Exchange) -> bool:
        if exchange.method != "GET":
            return False
        wire = EventsWire(exchange)
        wire.begin()
        match self.argument:
            case "changes":
                while True:
                    wire.frame(encoded(notification("tools/list_changed")))
            case "garbage":
                while True:
                    wire.raw(os.urandom(65_536))
            case "large":
                wire.raw(b"data: " + b"x" * 30_000_000 + b"\n\n")
                exchange.wait()
            case "endless":
                wire.raw(b"data: ")
                while True:
                    wire.raw(b"x" * 1_000_000)
            case "lines":
                while True:
                    wire.raw(b"data:\n" * 10_000)
            case "questions":
                while True:
                    wire.frame(encoded({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}))
        return True


if __name__ == "__main__":
    serve(BusyStream)
