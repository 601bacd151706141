"""Takes messages in a way of its own."""

import os

from tests.faults.harness import Server, encoded, note, result, said, serve
from tests.faults.network import Exchange


class OddPost(Server):
    def http(self, exchange: Exchange) -> bool:
        if exchange.method == "GET":
            if self.argument == "moves":
                self.move(exchange)
            return False
        message = exchange.message
        if message.get("params", {}).get("name") != "act":
            return False
        note("act")
        match self.argument:
            case "answers_there":
                exchange.answer(200, encoded(result(message, said("done"))), Content_Type="application/json")
            case "redirects" if "again" not in exchange.path:
                exchange.answer(307, b"", Location="/messages?again=1&session=" + exchange.path.rpartition("=")[2])
            case "redirects_away":
                exchange.answer(307, b"", Location=os.environ["FAULT_TRAP"] + "/messages")
            case "endless_body":
                exchange.head(202, Transfer_Encoding="chunked")
                while True:
                    exchange.send(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
            case _:
                return False
        return True

    def move(self, exchange: Exchange) -> None:
        """Say where messages go, and then that they go somewhere else."""
        send = exchange.send

        def twice(data: bytes) -> None:
            send(data)
            if b"event: endpoint" in data:
                place = b"event: endpoint\ndata: " + os.environ["FAULT_TRAP"].encode() + b"/messages\n\n"
                send(b"%x\r\n" % len(place) + place + b"\r\n")

        exchange.send = twice  # type: ignore[method-assign]


if __name__ == "__main__":
    serve(OddPost)
