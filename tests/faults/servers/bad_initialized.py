"""Takes badly what it is told and has nothing to answer to: that the client is ready, that a call is off."""

from tests.faults.harness import Server, serve
from tests.faults.network import Exchange


class BadInitialized(Server):
    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if not str(message.get("method", "")).startswith("notifications/"):
            return False
        match self.argument:
            case "reset":
                exchange.reset()
            case "stream":
                exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
                exchange.wait()
            case "body":
                exchange.answer(200, b"\xff" * 2_000_000, Content_Type="application/json")
            case "answer":
                exchange.answer(200, b'{"jsonrpc": "2.0", "id": null, "result": {}}', Content_Type="application/json")
            case status:
                exchange.answer(int(status), b"no", Retry_After="7", Mcp_Session_Id="another")
        return True


if __name__ == "__main__":
    serve(BadInitialized)
