"""Takes connections for TLS, and then takes its time."""

import socket
import time

from tests.faults.harness import Server, serve, wait_for_ever


class SlowTls(Server):
    def dress(self, connection: socket.socket) -> socket.socket:
        match self.argument:
            case "never":
                wait_for_ever()
            case "drip":
                for byte in b"\x16\x03\x03\x40\x00" + bytes(16_384):
                    connection.sendall(bytes([byte]))
                    time.sleep(0.05)
            case "alert":
                connection.sendall(b"\x15\x03\x03\x00\x02\x02\x28")
            case "half_record":
                connection.sendall(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76")
                connection.shutdown(socket.SHUT_WR)
            case "flood":
                while True:
                    connection.sendall(b"\x16\x03\x03\x00\x04\x00\x00\x00\x00" * 10_000)
        return connection


if __name__ == "__main__":
    serve(SlowTls)
