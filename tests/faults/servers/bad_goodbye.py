"""Has a session over HTTP that it does not let go of in good order."""

from tests.faults.harness import Server, reply, serve
from tests.faults.network import BodyWire, Exchange


class BadGoodbye(Server):
    def http(self, exchange: Exchange) -> bool:
        if exchange.method == "DELETE":
            match self.argument:
                case "hangs":
                    exchange.wait()
                case "resets":
                    exchange.reset()
                case "redirects":
                    exchange.answer(307, b"", Location="/mcp")
                case "streams":
                    exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
                    while True:
                        exchange.send(b"5\r\n:no\n\n\r\n")
                case status:
                    exchange.answer(int(status), b"x" * 1_000_000)
            return True
        if exchange.method == "POST" and exchange.message.get("method") == "initialize":
            reply(BodyWire(exchange, Mcp_Session_Id="s1"), exchange.message, self.introduction())
            return True
        return False


if __name__ == "__main__":
    serve(BadGoodbye)
