"""Runs, or accepts the connection, and never says a word."""

from tests.faults.harness import Message, Server, Wire, serve, wait_for_ever
from tests.faults.network import Exchange


class HangsAtStart(Server):
    def http(self, exchange: Exchange) -> bool:
        exchange.wait()
        return True

    def take(self, message: Message, wire: Wire) -> None:
        wait_for_ever()


if __name__ == "__main__":
    serve(HangsAtStart)
