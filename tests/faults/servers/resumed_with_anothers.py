"""Ends its streams early, and on the ones that take them up again says first what is an answer to something else."""

from tests.faults.harness import Message, Server, Wire, encoded, note, result, said, serve
from tests.faults.network import EventsWire, Exchange


class ResumedWithAnothers(Server):
    def act(self, message: Message, wire: Wire) -> None:
        assert isinstance(wire, EventsWire)
        note("act")
        self.asked = message
        wire.raw(b"id: 1\nretry: 1\ndata:\n\n")

    def http(self, exchange: Exchange) -> bool:
        if exchange.method != "GET" or "last-event-id" not in exchange.headers:
            return False
        wire = EventsWire(exchange)
        wire.frame(encoded({**result(self.asked, said("another's")), "id": 4711}))
        if self.argument == "then_ours":
            wire.frame(encoded(result(self.asked, said("done"))))
            wire.close()
        exchange.wait()
        return True


if __name__ == "__main__":
    serve(ResumedWithAnothers)
