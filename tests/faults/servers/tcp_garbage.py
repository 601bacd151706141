"""Speaks, but not HTTP."""

import socket

from tests.faults.harness import Server, serve


class TcpGarbage(Server):
    def dress(self, connection: socket.socket) -> socket.socket:
        said = {
            "random": bytes(range(256)) * 64,
            "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
            "tls": b"\x15\x03\x01\x00\x02\x02\x28",
            "old_http": b"HTTP/0.9 200 OK\r\n\r\n",
            "bad_status": b"HTTP/1.1 abc Whatever\r\n\r\n",
            "bad_length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            "two_lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            "huge_header": b"HTTP/1.1 200 OK\r\nX-Large: " + b"x" * 1_000_000 + b"\r\n\r\n",
            "endless_header": b"",
            "continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
            "closed": b"",
        }[self.argument]
        connection.recv(65_536)
        connection.sendall(said)
        while self.argument == "endless_header":
            connection.sendall(b"x" * 65_536)
        raise ConnectionAbortedError


if __name__ == "__main__":
    serve(TcpGarbage)
