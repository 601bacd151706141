"""Ends the stream on which it could speak unasked, again and again."""

from tests.faults.harness import Server, note, serve
from tests.faults.network import EventsWire, Exchange


class FlappingStream(Server):
    def http(self, exchange: Exchange) -> bool:
        if exchange.method != "GET":
            return False
        note("get")
        match self.argument:
            case "ends":
                EventsWire(exchange).close()
            case "resets":
                exchange.reset()
            case "garbage":
                exchange.answer(200, b"\xff" * 1_000, Content_Type="text/event-stream")
            case "resumable":
                wire = EventsWire(exchange)
                wire.raw(b"id: 7\nretry: 0\ndata:\n\n")
                wire.close()
            case status:
                exchange.answer(int(status), b"no")
        return True


if __name__ == "__main__":
    serve(FlappingStream)
