"""Packs its answer in a way that unpacks badly."""

import gzip
import zlib

from tests.faults.harness import Server, encoded, result, said, serve
from tests.faults.network import Exchange


class PackedAnswer(Server):
    def packed(self, data: bytes) -> bytes:
        return gzip.compress(data, 1)

    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("params", {}).get("name") != "act":
            return False
        small = encoded(result(message, said("done")))
        bomb = small.replace(b"done", b"x" * 100_000_000) if "bomb" in self.argument else b""
        events = self.argument.startswith("events")
        encoding, body = {
            "gzip": ("gzip", self.packed(small)),
            "deflate": ("deflate", zlib.compress(small)),
            "gzip_bomb": ("gzip", self.packed(bomb)),
            "deflate_bomb": ("deflate", zlib.compress(bomb, 1)),
            "events_bomb": ("gzip", self.packed(b"data: " + bomb + b"\n\n")),
            "twice": ("gzip, gzip", self.packed(self.packed(small))),
            "twice_bomb": ("gzip, gzip", self.packed(self.packed(bomb))),
            "brotli": ("br", b"\x8b\x02\x80abc\x03"),
            "unknown": ("zstd", small),
            "truncated": ("gzip", self.packed(small)[:-12]),
            "not_packed": ("gzip", small),
        }[self.argument]
        kind = "text/event-stream" if events else "application/json"
        exchange.answer(200, body, Content_Type=kind, Content_Encoding=encoding)
        return True


if __name__ == "__main__":
    serve(PackedAnswer)
