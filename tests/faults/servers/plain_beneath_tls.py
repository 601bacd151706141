"""Speaks TLS with the certificate that it is given."""

import os
import socket
import ssl

from tests.faults.harness import Server, serve


class PlainBeneathTls(Server):
    def dress(self, connection: socket.socket) -> socket.socket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.environ["FAULT_CERTIFICATE"])
        return context.wrap_socket(connection, server_side=True)


if __name__ == "__main__":
    serve(PlainBeneathTls)
