"""Packs its answer within the letter of gzip."""

import gzip
import struct
import zlib

from tests.faults.harness import Server, encoded, result, said, serve
from tests.faults.network import EventsWire, Exchange


class OddGzip(Server):
    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("params", {}).get("name") != "act":
            return False
        good = encoded(result(message, said("done")))
        packed = gzip.compress(good)
        kept = {"Content_Type": "application/json", "Content_Encoding": "gzip"}
        match self.argument:
            case "members":
                exchange.answer(200, gzip.compress(good[:20]) + gzip.compress(good[20:]), **kept)
            case "trailing":
                exchange.answer(200, packed + b"\0" * 100, **kept)
            case "wrong_sum":
                exchange.answer(200, packed[:-8] + struct.pack("<II", 0, len(good)), **kept)
            case "nothing":
                exchange.answer(200, b"", **kept)
            case "long_name":
                exchange.head(Transfer_Encoding="chunked", **kept)
                exchange.send(b"a\r\n\x1f\x8b\x08\x08\0\0\0\0\0\xff\r\n")
                while True:
                    exchange.send(b"2710\r\n" + b"n" * 10_000 + b"\r\n")
            case "events":
                wire = EventsWire(exchange, Content_Encoding="gzip")
                packer = zlib.compressobj(9, zlib.DEFLATED, 31)
                wire.raw(packer.compress(b": hello\n\n") + packer.flush(zlib.Z_SYNC_FLUSH))
                wire.raw(packer.compress(b"data: " + good + b"\n\n") + packer.flush(zlib.Z_FINISH))
                wire.close()
        return True


if __name__ == "__main__":
    serve(OddGzip)
