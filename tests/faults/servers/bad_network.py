"""Behaves, behind a network that does not."""

import random
import socket
import threading
import time
from collections.abc import Iterator

from tests.faults.harness import Message, Server, Wire, serve, wait_for_ever


class BadNetwork(Server):
    dark = False

    def act(self, message: Message, wire: Wire) -> None:
        self.dark = self.argument == "blackhole"
        super().act(message, wire)

    def dress(self, connection: socket.socket) -> socket.socket:
        ours, theirs = socket.socketpair()
        threading.Thread(target=self.carry, args=(connection, theirs), daemon=True).start()
        threading.Thread(target=self.carry, args=(theirs, connection), daemon=True).start()
        return ours

    def carry(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                for part in self.delayed(data):
                    if self.dark:
                        wait_for_ever()
                    target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def delayed(self, data: bytes) -> Iterator[bytes]:
        match self.argument:
            case "latency":
                time.sleep(0.05)
                yield data
            case "jitter":
                for start in range(0, len(data), 50):
                    time.sleep(random.uniform(0, 0.01))
                    yield data[start : start + 50]
            case "bandwidth":
                for start in range(0, len(data), 512):
                    time.sleep(0.01)
                    yield data[start : start + 512]
            case "bytes":
                for byte in data:
                    yield bytes([byte])
            case _:
                yield data


if __name__ == "__main__":
    serve(BadNetwork)
