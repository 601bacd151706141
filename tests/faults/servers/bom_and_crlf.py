"""Begins with a byte order mark and ends with a carriage return."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class BomAndCrlf(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(b"\xef\xbb\xbf  " + encoded(result(message, said("done"))) + b"\r")


if __name__ == "__main__":
    serve(BomAndCrlf)
