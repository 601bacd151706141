"""Refuses a large message before it has read it, or never reads it at all."""

from tests.faults.harness import Server, serve, wait_for_ever
from tests.faults.network import Exchange


class EarlyRefusal(Server):
    def head(self, exchange: Exchange) -> bool:
        if int(exchange.headers.get("content-length", 0)) < 1_000_000:
            return False
        if self.argument == "never_reads":
            wait_for_ever()
        exchange.answer(413, b"too large", Connection="close")
        if self.argument == "resets":
            exchange.reset()
        return True


if __name__ == "__main__":
    serve(EarlyRefusal)
