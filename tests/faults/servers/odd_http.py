"""Frames its answer to a call in ways that HTTP allows, or nearly does."""

import time

from tests.faults.harness import Server, encoded, note, result, said, serve
from tests.faults.network import Exchange

_JSON = b"Content-Type: application/json\r\n"


class OddHttp(Server):
    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("params", {}).get("name") != "act":
            return False
        note("act")
        good = encoded(result(message, said("done")))
        length = b"Content-Length: %d\r\n\r\n" % len(good)
        match self.argument:
            case "early_hints":
                exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 2_000)
                exchange.send(b"HTTP/1.1 200 OK\r\n" + _JSON + length + good)
            case "endless_hints":
                while True:
                    exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 1_000)
            case "endless_head":
                exchange.send(b"HTTP/1.1 200 OK\r\n" + _JSON)
                while True:
                    exchange.send(b"X-More: " + b"x" * 1_000 + b"\r\n")
            case "slow_head":
                for byte in b"HTTP/1.1 200 OK\r\n" + _JSON + length:
                    exchange.send(bytes([byte]))
                    time.sleep(0.1)
            case "long_head":
                exchange.send(b"HTTP/1.1 200 OK\r\n" + _JSON + b"X-Long: " + b"x" * 200_000 + b"\r\n" + length + good)
            case "chunk_extension":
                exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + _JSON + b"\r\n5;")
                while True:
                    exchange.send(b"x" * 10_000)
            case "small_chunks":
                exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + _JSON + b"\r\n")
                exchange.send(b"".join(b"1;x=y\r\n" + bytes([byte]) + b"\r\n" for byte in good) + b"0\r\n\r\n")
            case "tiny_chunks":
                exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + _JSON + b"\r\n")
                exchange.send(b"1\r\n \r\n" * 200_000 + b"%x\r\n" % len(good) + good + b"\r\n0\r\n\r\n")
            case "latin_head":
                exchange.send(b"HTTP/1.1 200 OK\r\nX-Place: K\xf6ln\r\n" + _JSON + length + good)
            case "endless_trailer":
                exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + _JSON + b"\r\n")
                exchange.send(b"%x\r\n" % len(good) + good + b"\r\n0\r\n")
                while True:
                    exchange.send(b"X-Trailer: " + b"x" * 1_000 + b"\r\n")
            case "old_version":
                exchange.kept = False
                exchange.send(b"HTTP/1.0 200 OK\r\n" + _JSON + b"\r\n" + good)
            case "extra_bytes":
                exchange.send(b"HTTP/1.1 200 OK\r\n" + _JSON + length + good + b"\r\n\r\nand more")
            case "two_answers":
                forged = encoded(result(message, said("forged")))
                whole = b"HTTP/1.1 200 OK\r\n" + _JSON + length + good
                exchange.send(whole + b"HTTP/1.1 200 OK\r\n" + _JSON + b"Content-Length: %d\r\n\r\n" % len(forged))
                exchange.send(forged)
            case "closes_silently":
                exchange.send(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n" + _JSON + length + good)
                exchange.kept = False
            case status:
                exchange.send(b"HTTP/1.1 " + status.encode() + b" Odd\r\n" + _JSON + length + good)
        return True


if __name__ == "__main__":
    serve(OddHttp)
