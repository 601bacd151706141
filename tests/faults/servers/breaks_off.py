"""Breaks its answer off."""

from tests.faults.harness import Server, encoded, note, result, said, serve
from tests.faults.network import Exchange


class BreaksOff(Server):
    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("params", {}).get("name") != "act":
            return False
        note("act")
        good = encoded(result(message, said("done")))
        exchange.kept = False
        match self.argument:
            case "reset":
                exchange.reset()
            case "close":
                return True
            case "half_head":
                exchange.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
            case "reset_in_body":
                exchange.head(Content_Type="application/json", Content_Length=len(good))
                exchange.send(good[:20])
                exchange.reset()
            case "short_body":
                exchange.head(Content_Type="application/json", Content_Length=len(good) + 100)
                exchange.send(good)
            case "half_chunk":
                exchange.head(Content_Type="application/json", Transfer_Encoding="chunked")
                exchange.send(b"%x\r\n" % (len(good) + 100) + good)
            case "bad_chunk":
                exchange.head(Content_Type="application/json", Transfer_Encoding="chunked")
                exchange.send(b"zz\r\n" + good)
        return True


if __name__ == "__main__":
    serve(BreaksOff)
