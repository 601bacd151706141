"""Asks without end, and reads none of the answers."""

from tests.faults.harness import Message, Server, Wire, serve, wait_for_ever
from tests.faults.network import PING, WebSocketWire


class ReadsNoAnswers(Server):
    def act(self, message: Message, wire: Wire) -> None:
        match self.argument:
            case "long_ids":
                for number in range(300):
                    wire.frame(b'{"jsonrpc":"2.0","method":"ping","id":"%d%s"}' % (number, b"x" * 1_000_000))
            case "pings":
                assert isinstance(wire, WebSocketWire)
                many = (bytes([0x80 | PING, 125]) + b"p" * 125) * 1_000
                while True:
                    wire.raw(many)
            case _:
                for number in range(200_000):
                    wire.frame(b'{"jsonrpc":"2.0","method":"ping","id":%d}' % number)
        wait_for_ever()


if __name__ == "__main__":
    serve(ReadsNoAnswers)
