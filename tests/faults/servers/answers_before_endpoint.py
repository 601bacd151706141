"""Sends answers and notifications before it names a place for messages."""

from tests.faults.harness import Server, encoded, said, serve
from tests.faults.network import EventsWire, Exchange


class AnswersBeforeEndpoint(Server):
    def http(self, exchange: Exchange) -> bool:
        if exchange.method == "GET":
            wire = EventsWire(exchange)
            for guess in range(100):
                wire.frame(encoded({"jsonrpc": "2.0", "id": guess, "result": said("INJECTED")}))
            exchange.send(b"")
            self.early = wire
            wire.event(b"endpoint", b"data: /messages?session=early")
            exchange.wait()
        message = exchange.message
        exchange.answer(202)
        self.take(message, self.early)
        return True


if __name__ == "__main__":
    serve(AnswersBeforeEndpoint)
