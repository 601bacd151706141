"""Knows no session, however often one is opened."""

from tests.faults.harness import Server, note, reply, serve
from tests.faults.network import BodyWire, Exchange


class AlwaysForgetsSession(Server):
    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("method") == "initialize":
            reply(BodyWire(exchange, Mcp_Session_Id="s1"), message, self.introduction())
            return True
        if message.get("method") == "tools/call":
            note("call")
            exchange.answer(404, b"")
            return True
        return False


if __name__ == "__main__":
    serve(AlwaysForgetsSession)
