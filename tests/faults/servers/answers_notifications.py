"""Answers what has no answer."""

from tests.faults.harness import Message, Server, Wire, encoded, serve


class AnswersNotifications(Server):
    def told(self, message: Message, wire: Wire) -> None:
        if "method" not in message or wire.transport in ("http", "json"):
            return
        for answer in (
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}},
            {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}},
            {"jsonrpc": "2.0", "result": {}},
            {"jsonrpc": "2.0", "id": message["method"], "result": {}},
        ):
            wire.frame(encoded(answer))

    def http(self, exchange) -> bool:  # type: ignore[no-untyped-def]
        message = exchange.message if exchange.method == "POST" else {}
        if "id" in message or "method" not in message or exchange.transport == "sse":
            return False
        refused = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}}
        exchange.answer(400, encoded(refused), Content_Type="application/json")
        return True


if __name__ == "__main__":
    serve(AnswersNotifications)
