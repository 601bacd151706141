"""Hangs in a call, and again when it is told that nobody waits any more."""

from tests.faults.harness import Server, note, serve
from tests.faults.network import Exchange


class HangsWhenCancelled(Server):
    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("method") == "notifications/cancelled":
            note("cancelled")
            exchange.wait()
        if message.get("params", {}).get("name") == "act":
            exchange.wait()
        return False


if __name__ == "__main__":
    serve(HangsWhenCancelled)
