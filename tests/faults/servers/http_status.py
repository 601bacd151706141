"""Refuses with an HTTP status, when it is connected or when it is called."""

from tests.faults.harness import Server, note, serve
from tests.faults.network import Exchange


class HttpStatus(Server):
    def http(self, exchange: Exchange) -> bool:
        moment, _, status = self.argument.partition("-")
        if moment == "call" and exchange.message.get("params", {}).get("name") != "act":
            return False
        headers = {"Retry_After": "1"} if status in ("429", "503") else {}
        note("refused")
        exchange.answer(int(status), b"nothing to see here", Content_Type="text/plain", **headers)
        return True


if __name__ == "__main__":
    serve(HttpStatus)
