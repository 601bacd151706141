"""Forgets the session once, as a server does that was restarted."""

import time

from tests.faults.harness import Message, Server, Wire, note, reply, serve
from tests.faults.network import BodyWire, Exchange


class ForgetsSession(Server):
    forgotten = False

    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("method") == "initialize":
            wire = BodyWire(exchange, Mcp_Session_Id=f"s{time.monotonic_ns()}")
            reply(wire, message, self.introduction())
            return True
        if message.get("method") == "tools/call" and not self.forgotten:
            self.forgotten = True
            exchange.answer(404, b"")
            return True
        return False

    def act(self, message: Message, wire: Wire) -> None:
        note("act")
        super().act(message, wire)


if __name__ == "__main__":
    serve(ForgetsSession)
