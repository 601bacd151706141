"""Names a wrong place for messages, or none."""

import os

from tests.faults.harness import Server, serve
from tests.faults.network import EventsWire, Exchange


class Endpoint(Server):
    def http(self, exchange: Exchange) -> bool:
        if exchange.method != "GET":
            return False
        trap = os.environ["FAULT_TRAP"]
        wire = EventsWire(exchange)
        wire.begin()
        places = {
            "foreign": trap + "/messages",
            "other_name": trap.replace("127.0.0.1", "localhost") + "/messages",
            "scheme_relative": trap.removeprefix("http:") + "/messages",
            "userinfo": trap.replace("//", "//x@") + "/messages",
            "javascript": "javascript:alert(1)",
            "file": "file:///etc/passwd",
            "empty": "",
            "not_a_url": "http://[",
            "huge": "/" + "m" * 1_000_000,
        }
        if self.argument == "closed":
            wire.close()
        elif self.argument != "never":
            wire.event(b"endpoint", b"data: " + places[self.argument].encode())
        exchange.wait()
        return True


if __name__ == "__main__":
    serve(Endpoint)
