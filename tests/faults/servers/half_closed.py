"""Closes one direction of its connection in the middle of a call."""

import socket

from tests.faults.harness import Message, Server, Wire, note, reply, said, serve


class HalfClosed(Server):
    def act(self, message: Message, wire: Wire) -> None:
        note("act")
        connection = wire.exchange.socket  # type: ignore[attr-defined]
        if self.argument == "writing":
            connection.shutdown(socket.SHUT_WR)
            wire.hold()
        else:
            connection.shutdown(socket.SHUT_RD)
            reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(HalfClosed)
