"""Answers like a web server that has never heard of MCP."""

from tests.faults.harness import Server, encoded, result, said, serve
from tests.faults.network import Exchange


class NotAnMcpAnswer(Server):
    def http(self, exchange: Exchange) -> bool:
        moment, _, kind = self.argument.partition("-")
        message = exchange.message if exchange.method == "POST" else {}
        if moment == "call" and message.get("params", {}).get("name") != "act":
            return False
        html = b"<html><body>Please sign in to the hotel network</body></html>"
        match kind:
            case "portal":
                exchange.answer(200, html, Content_Type="text/html")
            case "empty":
                exchange.answer(200, b"", Content_Type="application/json")
            case "untyped":
                exchange.answer(200, b"")
            case "accepted":
                exchange.answer(202)
            case "no_content":
                exchange.head(204)
            case "bad_json":
                exchange.answer(200, b'{"jsonrpc": "2.0", ', Content_Type="application/json")
            case "list":
                exchange.answer(200, b"[1, 2]", Content_Type="application/json")
            case "plain":
                exchange.answer(
                    200, encoded(result(message, said("done"))) if message else b"", Content_Type="text/plain"
                )
            case "echo":
                exchange.answer(200, exchange.body, Content_Type="application/json")
        return True


if __name__ == "__main__":
    serve(NotAnMcpAnswer)
