"""Stops in the middle of an HTTP answer."""

from tests.faults.harness import Server, serve
from tests.faults.network import Exchange


class HangsInHttp(Server):
    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("params", {}).get("name") != "act":
            return False
        if self.argument != "before_head":
            exchange.head(Content_Type="application/json", Content_Length=500)
        if self.argument == "in_body":
            exchange.send(b'{"jsonrpc": "2.0"')
        exchange.wait()
        return True


if __name__ == "__main__":
    serve(HangsInHttp)
